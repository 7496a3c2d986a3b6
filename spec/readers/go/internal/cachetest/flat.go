package cachetest

import "encoding/binary"

// flat writes a FlatBuffer front to back: what a table points at is written behind it, and the offset patched.
type flat struct{ data []byte }

func (f *flat) align(n int) {
	for len(f.data)%n != 0 {
		f.data = append(f.data, 0)
	}
}

func (f *flat) put32(pos int, v uint32) { binary.LittleEndian.PutUint32(f.data[pos:], v) }

// point makes the offset at pos lead to the end of what is written.
func (f *flat) point(pos int) {
	f.align(4)
	f.put32(pos, uint32(len(f.data)-pos))
}

// slot is the value of a slot: a scalar of size bytes, or an offset (size 4) patched later. Size 0 is absent.
type slot struct {
	size  int
	value uint64
}

// table writes a vtable and its table and gives the places of the slots' values.
func (f *flat) table(slots ...slot) (pos int, places []int) {
	f.align(8)
	vtable := len(f.data)
	f.data = append(f.data, make([]byte, 4+2*len(slots))...)
	f.align(8)
	pos = len(f.data)
	f.data = binary.LittleEndian.AppendUint32(f.data, uint32(pos-vtable))
	for i, s := range slots {
		if s.size == 0 {
			places = append(places, 0)
			continue
		}
		f.align(s.size)
		places = append(places, len(f.data))
		binary.LittleEndian.PutUint16(f.data[vtable+4+2*i:], uint16(len(f.data)-pos))
		f.data = append(f.data, binary.LittleEndian.AppendUint64(nil, s.value)[:s.size]...)
	}
	binary.LittleEndian.PutUint16(f.data[vtable:], uint16(4+2*len(slots)))
	binary.LittleEndian.PutUint16(f.data[vtable+2:], uint16(len(f.data)-pos))
	return pos, places
}

// vector writes a vector of structs at the place that an offset leads to; its items are at multiples of 8.
func (f *flat) vector(offset, count int, items []byte) {
	f.align(8)
	f.data = append(f.data, 0, 0, 0, 0)
	f.point(offset)
	f.data = binary.LittleEndian.AppendUint32(f.data, uint32(count))
	f.data = append(f.data, items...)
}

func (f *flat) text(offset int, s string) {
	f.point(offset)
	f.data = binary.LittleEndian.AppendUint32(f.data, uint32(len(s)))
	f.data = append(append(f.data, s...), 0)
}
