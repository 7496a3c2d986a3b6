package sampling

import (
	"fmt"
	"math"
	"math/bits"
	"sort"
)

// CheckWeights refuses a weight that is not finite and above zero, and an empty list.
func CheckWeights(weights []float64) error {
	if len(weights) == 0 {
		return fmt.Errorf("sampling: no weights")
	}
	for i, w := range weights {
		if !(w > 0) || math.IsInf(w, 1) {
			return fmt.Errorf("sampling: weight %d is %v, should be finite and above 0", i, w)
		}
	}
	return nil
}

// Equal says whether all weights are the same 64 bits.
func Equal(weights []float64) bool {
	for _, w := range weights {
		if math.Float64bits(w) != math.Float64bits(weights[0]) {
			return false
		}
	}
	return true
}

// significand gives integers with w = sig * 2^exp and sig < 2^53.
func significand(w float64) (sig uint64, exp int) {
	b := math.Float64bits(w)
	sig, exp = b&(1<<52-1), int(b>>52&0x7FF)
	if exp == 0 {
		return sig, -1074
	}
	return sig | 1<<52, exp - 1075
}

// Tickets gives how many tickets each row has, and their sum. The weights must have passed [CheckWeights].
func Tickets(weights []float64) (tickets []uint64, sum uint64) {
	largest := 0.0
	for _, w := range weights {
		largest = max(largest, w)
	}
	sig, exp := significand(largest)
	top := exp + bits.Len64(sig) - 1
	tickets = make([]uint64, len(weights))
	high, low := uint64(0), uint64(0)
	for i, w := range weights {
		sig, exp := significand(w)
		t := sig
		if shift := exp + 62 - top; shift >= 0 {
			t <<= shift
		} else {
			t >>= -shift
		}
		tickets[i] = t
		var carry uint64
		low, carry = bits.Add64(low, t, 0)
		high += carry
	}
	length := bits.Len64(low)
	if high != 0 {
		length = 64 + bits.Len64(high)
	}
	shift := max(0, length-63)
	for i := range tickets {
		tickets[i] = max(1, tickets[i]>>shift)
		sum += tickets[i]
	}
	return tickets, sum
}

// urn draws rows by their tickets.
type urn struct{ ends []uint64 }

func newUrn(weights []float64) urn {
	ends, _ := Tickets(weights)
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	return urn{ends}
}

func (u urn) row(seed, position uint64, stream uint32) uint64 {
	ticket := NewBlock(seed, position, stream, Draw, 0).Scale(u.ends[len(u.ends)-1])
	return uint64(sort.Search(len(u.ends), func(i int) bool { return u.ends[i] > ticket }))
}
