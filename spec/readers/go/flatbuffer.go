package datasetrt

import "encoding/binary"

// flatbuffer reads a FlatBuffer that nobody has validated. A read outside of it gives zero and sets bad,
// which the caller looks at before it uses what was read, and before each loop.
type flatbuffer struct {
	data []byte
	bad  bool
}

// table is a table of a flatbuffer; none is a table that isn't there.
type table struct{ pos, vtable, slots int }

// vector is a vector's elements.
type vector struct{ pos, count int }

// bytes gives n bytes at pos, or nil.
func (f *flatbuffer) bytes(pos, n int) []byte {
	if f.bad || pos < 0 || n < 0 || pos > len(f.data) || n > len(f.data)-pos {
		f.bad = true
		return nil
	}
	return f.data[pos : pos+n]
}

func (f *flatbuffer) u8(pos int) uint8 {
	if b := f.bytes(pos, 1); b != nil {
		return b[0]
	}
	return 0
}

func (f *flatbuffer) u16(pos int) uint16 {
	if b := f.bytes(pos, 2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (f *flatbuffer) u32(pos int) uint32 {
	if b := f.bytes(pos, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (f *flatbuffer) i64(pos int) int64 {
	if b := f.bytes(pos, 8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// follow gives the place that the offset at pos leads to.
func (f *flatbuffer) follow(pos int) int { return pos + int(f.u32(pos)) }

func (f *flatbuffer) root() table { return f.tableAt(f.follow(0)) }

func (f *flatbuffer) tableAt(pos int) table {
	vtable := pos - int(int32(f.u32(pos)))
	size := int(f.u16(vtable))
	f.bytes(vtable, size)
	if size < 4 || size%2 != 0 {
		f.bad = true
	}
	if f.bad {
		return table{}
	}
	// The table's own bytes, whose number the vtable names, must be there too.
	length := int(f.u16(vtable + 2))
	f.bytes(pos, length)
	return table{pos, vtable, (size - 4) / 2}
}

// slot gives where a slot's value is, or 0 where it is absent: no value can be at 0, where the root offset is.
func (f *flatbuffer) slot(t table, i int) int {
	if i >= t.slots {
		return 0
	}
	if offset := int(f.u16(t.vtable + 4 + 2*i)); offset != 0 {
		return t.pos + offset
	}
	return 0
}

func (f *flatbuffer) slotU8(t table, i int) uint8 {
	if pos := f.slot(t, i); pos != 0 {
		return f.u8(pos)
	}
	return 0
}

func (f *flatbuffer) slotI16(t table, i int) int16 {
	if pos := f.slot(t, i); pos != 0 {
		return int16(f.u16(pos))
	}
	return 0
}

func (f *flatbuffer) slotI32(t table, i int) int32 {
	if pos := f.slot(t, i); pos != 0 {
		return int32(f.u32(pos))
	}
	return 0
}

func (f *flatbuffer) slotI64(t table, i int) int64 {
	if pos := f.slot(t, i); pos != 0 {
		return f.i64(pos)
	}
	return 0
}

// slotTable gives the table of a slot and whether it is there.
func (f *flatbuffer) slotTable(t table, i int) (table, bool) {
	pos := f.slot(t, i)
	if pos == 0 {
		return table{}, false
	}
	sub := f.tableAt(f.follow(pos))
	return sub, !f.bad
}

// slotVector gives the vector of a slot, whose elements have size bytes each; absent is empty.
func (f *flatbuffer) slotVector(t table, i, size int) vector {
	pos := f.slot(t, i)
	if pos == 0 {
		return vector{}
	}
	pos = f.follow(pos)
	count := int(f.u32(pos))
	if f.bad || count > len(f.data)/size {
		f.bad = true
		return vector{}
	}
	f.bytes(pos+4, count*size)
	if f.bad {
		return vector{}
	}
	return vector{pos + 4, count}
}

// slotText gives the bytes of a text; absent is empty.
func (f *flatbuffer) slotText(t table, i int) []byte {
	v := f.slotVector(t, i, 1)
	return f.bytes(v.pos, v.count)
}
