package sampling

import "math/bits"

// Philox is the generator Philox4x32-10: a keyed function of the counter.
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	c0, c1, c2, c3 := counter[0], counter[1], counter[2], counter[3]
	k0, k1 := key[0], key[1]
	for range 10 {
		p0 := 0xD2511F53 * uint64(c0)
		p1 := 0xCD9E8D57 * uint64(c2)
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return [4]uint32{c0, c1, c2, c3}
}

// Domain says what a block is for, so that no two uses share one.
type Domain uint32

// The domains of the algorithm.
const (
	Draw  Domain = 1 // draws with replacement; the index is the position
	Round Domain = 2 // round keys of the permutation; the index is the pass
	Pass  Domain = 3 // sub-key of a weighted order; the index is the pass
	Race  Domain = 4 // keys of a weighted order; the index is the row, the key the sub-key
	Small Domain = 5 // permutation of up to 20 rows; the index is the pass
)

// Block is an output of the generator as an integer of 128 bits.
type Block struct{ High, Low uint64 }

// NewBlock computes the block of a key, index and stream for a use; sub is below 2^24.
func NewBlock(key, index uint64, stream uint32, domain Domain, sub uint32) Block {
	w := Philox(
		[4]uint32{uint32(index), uint32(index >> 32), stream, uint32(domain) + 256*sub},
		[2]uint32{uint32(key), uint32(key >> 32)},
	)
	return Block{uint64(w[3])<<32 | uint64(w[2]), uint64(w[1])<<32 | uint64(w[0])}
}

// Scale gives x * m / 2^128, rounded down: an integer below m.
func (x Block) Scale(m uint64) uint64 {
	high, middle := bits.Mul64(x.High, m)
	carried, _ := bits.Mul64(x.Low, m)
	_, carry := bits.Add64(middle, carried, 0)
	return high + carry
}
