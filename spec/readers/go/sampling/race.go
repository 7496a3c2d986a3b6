package sampling

import (
	"cmp"
	"math"
	"slices"
)

// Exponential gives the exponential variate of a random number. Each step is one operation of binary64; the
// explicit conversions keep a compiler from contracting what the algorithm doesn't allow to be contracted.
func Exponential(x uint64) float64 {
	u := x>>11 + 1
	fraction, exponent := math.Frexp(float64(u) / (1 << 53))
	m, k := 2*fraction, float64(1-exponent)
	if m > 1.4142135623730951 {
		m /= 2
		k--
	}
	s := (1 - m) / (1 + m)
	z := float64(s * s)
	t := 325.0 / 256
	t = 704.0/225 - z/t
	t = 81.0/64 - z/t
	t = 28.0/9 - z/t
	t = 5.0/4 - z/t
	t = 3 - z/t
	t = 1 - z/t
	const ln2 = 97551793252584.0 / (1 << 47)
	return float64(k*ln2) + float64(2*(s/t))
}

// RaceKey gives the key that orders rows as e / weight does.
func RaceKey(e, weight float64) uint64 {
	if e == 0 {
		return 0
	}
	m1, e1 := math.Frexp(e)
	m2, e2 := math.Frexp(weight)
	return math.Float64bits(m1/m2) + uint64(e1-e2+64)<<52
}

// RaceKeys gives the keys of all rows in a pass of a weighted order.
func RaceKeys(seed, pass uint64, stream uint32, weights []float64) []uint64 {
	key := NewBlock(seed, pass, stream, Pass, 0).Low
	keys := make([]uint64, len(weights))
	for i, w := range weights {
		keys[i] = RaceKey(Exponential(NewBlock(key, uint64(i), stream, Race, 0).Low), w)
	}
	return keys
}

// WeightedOrder gives all rows in the order of a pass without replacement and with unequal weights.
func WeightedOrder(seed, pass uint64, stream uint32, weights []float64) []uint64 {
	keys := RaceKeys(seed, pass, stream, weights)
	order := make([]uint64, len(keys))
	for i := range order {
		order[i] = uint64(i)
	}
	slices.SortFunc(order, func(i, j uint64) int {
		return cmp.Or(cmp.Compare(keys[i], keys[j]), cmp.Compare(i, j))
	})
	return order
}
