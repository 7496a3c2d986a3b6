package sampling

import (
	"math"
	"math/bits"
)

const (
	smallRows = 20
	rounds    = 24
)

// Permutation is the order of the rows in one pass, without replacement and with equal weights. A zero one is of no use.
type Permutation struct {
	rows  uint64
	small []uint64 // up to 20 rows
	a, b  uint64
	keys  [rounds]uint64
}

// NewPermutation gives the permutation of rows 0 .. rows-1 in a pass; rows is 1 .. 2^62.
func NewPermutation(seed, pass uint64, stream uint32, rows uint64) *Permutation {
	p := &Permutation{rows: rows}
	if rows <= smallRows {
		p.small = numbered(PermutationNumber(seed, pass, stream, rows), rows)
		return p
	}
	p.a, p.b = Sides(rows)
	p.keys = RoundKeys(seed, pass, stream)
	return p
}

// PermutationNumber draws the number, below rows!, of the permutation of up to 20 rows.
func PermutationNumber(seed, pass uint64, stream uint32, rows uint64) uint64 {
	return NewBlock(seed, pass, stream, Small, 0).Scale(factorial(rows))
}

func factorial(n uint64) uint64 {
	f := uint64(1)
	for i := uint64(2); i <= n; i++ {
		f *= i
	}
	return f
}

// numbered gives the permutation of a number in the factorial system.
func numbered(number, rows uint64) []uint64 {
	left := make([]uint64, rows)
	for i := range left {
		left[i] = uint64(i)
	}
	order := make([]uint64, 0, rows)
	for i := range rows {
		f := factorial(rows - 1 - i)
		d := number / f
		number %= f
		order = append(order, left[d])
		left = append(left[:d], left[d+1:]...)
	}
	return order
}

// Sides gives the sides of the rectangle whose places are permuted: a is the smallest even integer with a * a >= rows, b is ceil(rows / a).
func Sides(rows uint64) (a, b uint64) {
	// The root in binary64 can be wrong by one; it is put right in integers.
	a = uint64(math.Sqrt(float64(rows)))
	for a*a >= rows && a > 0 {
		a--
	}
	for a*a < rows {
		a++
	}
	a += a & 1
	return a, (rows + a - 1) / a
}

// RoundKeys gives the keys of the 24 rounds.
func RoundKeys(seed, pass uint64, stream uint32) (keys [rounds]uint64) {
	for i := range uint32(rounds / 2) {
		block := NewBlock(seed, pass, stream, Round, i)
		keys[2*i], keys[2*i+1] = block.Low, block.High
	}
	return keys
}

// Mix is the round function's hash.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func below(x, m uint64) uint64 {
	high, _ := bits.Mul64(Mix(x), m)
	return high
}

// Row gives the row at a place, which is below the number of rows.
func (p *Permutation) Row(place uint64) uint64 {
	if p.small != nil {
		return p.small[place]
	}
	// Both summands of a round are below the side, so one subtraction is the remainder.
	for {
		left, right := place/p.b, place%p.b
		for i := 0; i < rounds; i += 2 {
			if left += below(right^p.keys[i], p.a); left >= p.a {
				left -= p.a
			}
			if right += below(left^p.keys[i+1], p.b); right >= p.b {
				right -= p.b
			}
		}
		if place = left*p.b + right; place < p.rows {
			return place
		}
	}
}

// Place gives the place of a row, which is below the number of rows.
func (p *Permutation) Place(row uint64) uint64 {
	for place, r := range p.small {
		if r == row {
			return uint64(place)
		}
	}
	for {
		left, right := row/p.b, row%p.b
		for i := rounds - 2; i >= 0; i -= 2 {
			d := below(left^p.keys[i+1], p.b)
			if right < d {
				right += p.b
			}
			right -= d
			d = below(right^p.keys[i], p.a)
			if left < d {
				left += p.a
			}
			left -= d
		}
		if row = left*p.b + right; row < p.rows {
			return row
		}
	}
}
