package sampling

import (
	"fmt"
	"math/bits"
)

// Policy says what becomes of the positions of a window that the ranks can't share evenly.
type Policy string

// The policies of the algorithm.
const (
	Pad   Policy = "pad"   // some positions are delivered twice, marked
	Drop  Policy = "drop"  // the last positions go to nobody
	Exact Policy = "error" // refused
)

// Rank is one of several processes that share a window.
type Rank struct {
	window      Window
	done, left  uint64
	ranks, rank uint64
	steps       uint64
}

// NewRank gives the part of rank number rank of ranks in a window of which done positions have been delivered before.
func NewRank(policy Policy, w Window, done, ranks, rank uint64) (*Rank, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	if done > w.Len || ranks == 0 || rank >= ranks {
		return nil, fmt.Errorf("sampling: rank %d of %d, %d of %d positions delivered", rank, ranks, done, w.Len)
	}
	if w.Len < ranks {
		return nil, fmt.Errorf("sampling: a window of %d positions is too short for %d ranks", w.Len, ranks)
	}
	r := &Rank{window: w, done: done, left: w.Len - done, ranks: ranks, rank: rank}
	r.steps = r.left / ranks
	rest := r.left % ranks
	switch {
	case policy == Pad && rest > 0:
		r.steps++
	case policy == Exact && rest > 0:
		return nil, fmt.Errorf("sampling: %d ranks don't divide the %d positions that are left", ranks, r.left)
	case policy != Pad && policy != Drop && policy != Exact:
		return nil, fmt.Errorf("sampling: no policy %q", policy)
	}
	return r, nil
}

// Steps is the number of steps of every rank.
func (r *Rank) Steps() uint64 { return r.steps }

// Position gives the position that the rank delivers in a step, which is below [Rank.Steps], and whether it is padding.
func (r *Rank) Position(step uint64) (position uint64, padding bool) {
	o := step*r.ranks + r.rank
	if o < r.left {
		return r.window.Start + r.done + o, false
	}
	return r.window.Start + (r.done+o)%r.window.Len, true
}

// Delivered gives how many positions all ranks together have delivered after a number of steps of each.
func (r *Rank) Delivered(steps uint64) uint64 {
	high, low := bits.Mul64(steps, r.ranks)
	if high != 0 || low > r.left {
		return r.window.Len
	}
	return r.done + low
}

// Worker says whether loader worker number worker of workers takes a step of its rank; batch is the batch
// size of loaders that make batches inside their workers, else 1.
func Worker(step, workers, worker, batch uint64) bool { return step/batch%workers == worker }
