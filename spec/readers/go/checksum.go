package datasetrt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync/atomic"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C is the CRC of section 2 of the format.
func CRC32C(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

const (
	sumBlockBits = 16
	sumBlock     = 1 << sumBlockBits
)

// BlockSums gives the CRC of each block of 65,536 bytes; the last block may be shorter.
func BlockSums(data []byte) []uint32 {
	sums := make([]uint32, 0, len(data)/sumBlock+1)
	for len(data) > 0 {
		n := min(len(data), sumBlock)
		sums = append(sums, CRC32C(data[:n]))
		data = data[n:]
	}
	return sums
}

// summed is a range of bytes whose blocks are checked when they are first used.
type summed struct {
	data []byte
	sums []byte // one little-endian CRC a block
	done []atomic.Uint64
	code Code
	name string // check
	file string
	what string // what the blocks are blocks of
}

func newSummed(data, sums []byte, code Code, check, file, what string) *summed {
	blocks := (len(data) + sumBlock - 1) / sumBlock
	return &summed{
		data: data, sums: sums, done: make([]atomic.Uint64, (blocks+63)/64),
		code: code, name: check, file: file, what: what,
	}
}

// need checks the blocks that bytes off..off+n lie in. The caller has made sure that these are inside of data.
func (s *summed) need(off, n uint64) error {
	if n == 0 {
		return nil
	}
	first, last := off>>sumBlockBits, (off+n-1)>>sumBlockBits
	if first == last && s.done[first>>6].Load()>>(first&63)&1 != 0 {
		return nil
	}
	return s.check(first, last)
}

func (s *summed) check(first, last uint64) error {
	for b := first; b <= last; b++ {
		bit := uint64(1) << (b & 63)
		if s.done[b>>6].Load()&bit != 0 {
			continue
		}
		begin := b << sumBlockBits
		got := CRC32C(s.data[begin:min(begin+sumBlock, uint64(len(s.data)))])
		if want := binary.LittleEndian.Uint32(s.sums[4*b:]); got != want {
			return fail(s.code, s.name, s.file, fmt.Sprintf("%s, block %d", s.what, b), "CRC is %08x, should be %08x", got, want)
		}
		s.done[b>>6].Or(bit)
	}
	return nil
}

// all checks every block, also those checked before.
func (s *summed) all() error {
	for i := range s.done {
		s.done[i].Store(0)
	}
	return s.need(0, uint64(len(s.data)))
}

func zero(data []byte) bool {
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}

func up(x, a uint64) uint64 { return (x + a - 1) / a * a }
