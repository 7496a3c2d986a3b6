package sampling

import (
	"fmt"
	"iter"
)

// Mode says how positions become rows.
type Mode string

// The modes of the algorithm.
const (
	Ordered          Mode = "ordered"
	Weighted         Mode = "weighted"
	PermutationMode  Mode = "permutation"
	WeightedOrdering Mode = "weighted_order"
)

const (
	maxRows      = 1 << 62
	endOfStream  = 1 << 63
	passesNobody = ^uint64(0)
)

// ModeOf chooses the mode of a configuration and the weights of all rows.
func ModeOf(shuffle, replacement bool, weights []float64) (Mode, error) {
	switch err := CheckWeights(weights); {
	case err != nil:
		return "", err
	case !shuffle:
		return Ordered, nil
	case replacement:
		return Weighted, nil
	case Equal(weights):
		return PermutationMode, nil
	default:
		return WeightedOrdering, nil
	}
}

// Stream is the draw stream of a table. It keeps what it needs of the pass it was last asked about, so
// it is for one goroutine.
type Stream struct {
	mode    Mode
	seed    uint64
	stream  uint32
	rows    uint64
	weights []float64

	urn         urn
	pass        uint64
	permutation *Permutation
	order       []uint64
}

// NewStream gives the stream of a table without weights, or with equal ones; rows is 1 .. 2^62.
// [WeightedOrdering] needs weights.
func NewStream(mode Mode, seed uint64, stream uint32, rows uint64) (*Stream, error) {
	if rows < 1 || rows > maxRows {
		return nil, fmt.Errorf("sampling: %d rows, 1 .. 2^62 are allowed", rows)
	}
	switch mode {
	case Ordered, Weighted, PermutationMode:
		return &Stream{mode: mode, seed: seed, stream: stream, rows: rows, pass: passesNobody}, nil
	case WeightedOrdering:
		return nil, fmt.Errorf("sampling: mode %s needs weights", mode)
	}
	return nil, fmt.Errorf("sampling: no mode %q", mode)
}

// NewWeightedStream gives the stream of a table with weights, one a row. They are not copied.
func NewWeightedStream(mode Mode, seed uint64, stream uint32, weights []float64) (*Stream, error) {
	if err := CheckWeights(weights); err != nil {
		return nil, err
	}
	if mode == WeightedOrdering {
		return &Stream{mode: mode, seed: seed, stream: stream, rows: uint64(len(weights)), weights: weights, pass: passesNobody}, nil
	}
	s, err := NewStream(mode, seed, stream, uint64(len(weights)))
	if err == nil && mode == Weighted && !Equal(weights) {
		s.urn = newUrn(weights)
	}
	return s, err
}

// Row gives the row at a position, which is below 2^63.
func (s *Stream) Row(position uint64) uint64 {
	if s.mode == Weighted {
		if s.urn.ends != nil {
			return s.urn.row(s.seed, position, s.stream)
		}
		return NewBlock(s.seed, position, s.stream, Draw, 0).Scale(s.rows)
	}
	pass, place := position/s.rows, position%s.rows
	switch s.mode {
	case PermutationMode:
		if s.pass != pass {
			s.pass, s.permutation = pass, NewPermutation(s.seed, pass, s.stream, s.rows)
		}
		return s.permutation.Row(place)
	case WeightedOrdering:
		if s.pass != pass {
			s.pass, s.order = pass, WeightedOrder(s.seed, pass, s.stream, s.weights)
		}
		return s.order[place]
	}
	return place
}

// Window is a piece of the stream.
type Window struct{ Start, Len uint64 }

// Check refuses a window that reaches past position 2^63.
func (w Window) Check() error {
	if w.Start > endOfStream || w.Len > endOfStream-w.Start {
		return fmt.Errorf("sampling: a window of %d positions from %d reaches past 2^63", w.Len, w.Start)
	}
	return nil
}

// Rows iterates over the rows of a window in the order of their positions. The window must have passed [Window.Check].
func (s *Stream) Rows(w Window) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for p := w.Start; p-w.Start < w.Len; p++ {
			if !yield(s.Row(p)) {
				return
			}
		}
	}
}
