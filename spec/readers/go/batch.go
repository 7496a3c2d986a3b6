package datasetrt

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// batch is a record batch whose structure has been checked.
type batch struct {
	number  int
	first   uint64 // row
	rows    uint64
	columns []column
}

// span is a buffer's place in the file.
type span struct{ offset, length uint64 }

// column is a column of a batch. values are the offsets of a text column.
type column struct {
	nulls                   uint64
	validity, values, bytes span
}

// readBatch makes the checks A6, A7, A9 and A10 and, for the blocks these need, A1. limit is for A8.
func (x *metadata) readBatch(i int, limit uint64) (*batch, error) {
	block := x.blocks[i]
	place := fmt.Sprintf("batch %d", i)
	if err := x.need(block.offset, block.metaLength); err != nil {
		return nil, err
	}
	message := x.data[block.offset : block.offset+block.metaLength]
	marker, length := binary.LittleEndian.Uint32(message), int32(binary.LittleEndian.Uint32(message[4:]))
	if marker != 0xFFFFFFFF || length < 0 || uint64(length) != block.metaLength-8 {
		return nil, invalidMetadata("A6", place, "message begins with %08x and length %d, should be ffffffff and %d", marker, length, block.metaLength-8)
	}
	f := &flatbuffer{data: message[8:]}
	root := f.root()
	version, kind, bodyLength := f.slotI16(root, 0), f.slotU8(root, 1), f.slotI64(root, 3)
	if f.bad || version != arrowV5 || kind != headerRecordBatch || bodyLength < 0 || uint64(bodyLength) != block.bodyLength {
		return nil, invalidMetadata("A6", place, "message of version %d, header %d, bodyLength %d", version, kind, bodyLength)
	}
	header, ok := f.slotTable(root, 2)
	if !ok {
		return nil, invalidMetadata("A6", place, "no sound header")
	}
	rows := f.slotI64(header, 0)
	nodes, buffers := f.slotVector(header, 1, 16), f.slotVector(header, 2, 16)
	_, compression := f.slotTable(header, 3)
	variadic := f.slotVector(header, 4, 8)
	switch {
	case f.bad:
		return nil, invalidMetadata("A6", place, "message leads out of itself")
	case compression || variadic.count != 0:
		return nil, invalidMetadata("A7", place, "is compressed or has variadic buffers")
	case rows < 1:
		return nil, invalidMetadata("A7", place, "length is %d, should be at least 1", rows)
	case nodes.count != len(x.fields) || buffers.count != x.buffers:
		return nil, invalidMetadata("A7", place, "%d nodes and %d buffers, should be %d and %d", nodes.count, buffers.count, len(x.fields), x.buffers)
	case uint64(rows) > limit:
		return nil, invalidMetadata("A8", place, "has more rows than the cache has samples")
	}
	b := &batch{number: i, first: block.first, rows: uint64(rows), columns: make([]column, len(x.fields))}
	next, end := buffers.pos, uint64(0)
	for j := range b.columns {
		node := nodes.pos + 16*j
		var err error
		if end, err = b.readColumn(f, j, x.fields[j], node, next, end, block); err != nil {
			return nil, err
		}
		next += 16 * buffersOf(x.fields[j].Type)
	}
	return b, nil
}

// readColumn makes the checks A7, A9 and A10 for a column whose FieldNode and first Buffer are at node and buffer.
// end is where the last Buffer before with any bytes ends in the body; the new end is returned.
func (b *batch) readColumn(f *flatbuffer, j int, field Field, node, buffer int, end uint64, block arrowBlock) (uint64, error) {
	place := func() string { return fmt.Sprintf("batch %d, field %q", b.number, field.Name) }
	length, nulls := f.i64(node), f.i64(node+8)
	if length != int64(b.rows) {
		return 0, invalidMetadata("A7", place(), "length is %d, the batch's is %d", length, b.rows)
	}
	c := &b.columns[j]
	spans := [3]*span{&c.validity, &c.values, &c.bytes}
	for k := range buffersOf(field.Type) {
		offset, length := f.i64(buffer+16*k), f.i64(buffer+16*k+8)
		if offset < 0 || length < 0 || offset%8 != 0 || uint64(offset)+uint64(length) > block.bodyLength {
			return 0, invalidMetadata("A9", place(), "buffer %d of offset %d and length %d in a body of %d bytes", k, offset, length, block.bodyLength)
		}
		if length != 0 {
			if uint64(offset) < end {
				return 0, invalidMetadata("A9", place(), "buffer %d has offset %d, the one before ends at %d", k, offset, end)
			}
			end = uint64(offset) + uint64(length)
		}
		*spans[k] = span{block.offset + block.metaLength + uint64(offset), uint64(length)}
	}
	if nulls < 0 || uint64(nulls) > b.rows || nulls > 0 && !field.Nullable {
		return 0, invalidMetadata("A10", place(), "null_count is %d", nulls)
	}
	c.nulls = uint64(nulls)
	bitmap := (b.rows + 7) / 8
	// Rows are at most the samples of a cache, so products don't overflow.
	want := 8 * b.rows
	switch field.Type {
	case Bool:
		want = bitmap
	case Utf8:
		want = 4 * (b.rows + 1)
	}
	if c.values.length < want || c.nulls > 0 && c.validity.length < bitmap {
		return 0, invalidMetadata("A10", place(), "%d bytes of values and %d of validity are too few for %d rows", c.values.length, c.validity.length, b.rows)
	}
	return end, nil
}

// value makes the checks A1, A11 and A12 for one cell and puts it into v. row counts from the batch's first.
func (x *metadata) value(b *batch, row uint64, j int, v *Value) error {
	c, typ := &b.columns[j], x.fields[j].Type
	null := false
	if c.nulls != 0 {
		at := c.validity.offset + row/8
		if err := x.need(at, 1); err != nil {
			return err
		}
		null = x.data[at]>>(row&7)&1 == 0
	}
	if typ == Utf8 {
		return x.text(b, row, j, null, v)
	}
	*v = Value{typ: typ, null: null}
	if null {
		return nil
	}
	if typ == Bool {
		at := c.values.offset + row/8
		if err := x.need(at, 1); err != nil {
			return err
		}
		v.bits = uint64(x.data[at]>>(row&7)) & 1
		return nil
	}
	at := c.values.offset + 8*row
	if err := x.need(at, 8); err != nil {
		return err
	}
	v.bits = binary.LittleEndian.Uint64(x.data[at:])
	return nil
}

func (x *metadata) text(b *batch, row uint64, j int, null bool, v *Value) error {
	c := &b.columns[j]
	place := func() string { return fmt.Sprintf("row %d, field %q", b.first+row, x.fields[j].Name) }
	at := c.values.offset + 4*row
	if err := x.need(at, 8); err != nil {
		return err
	}
	begin, end := int32(binary.LittleEndian.Uint32(x.data[at:])), int32(binary.LittleEndian.Uint32(x.data[at+4:]))
	if begin < 0 || begin > end || uint64(end) > c.bytes.length || end-begin > maxText {
		return invalidMetadata("A11", place(), "offsets %d and %d in %d bytes", begin, end, c.bytes.length)
	}
	*v = Value{typ: Utf8, null: null}
	if null || begin == end {
		return nil
	}
	at = c.bytes.offset + uint64(begin)
	n := uint64(end - begin)
	if err := x.need(at, n); err != nil {
		return err
	}
	v.text = x.data[at : at+n : at+n]
	if !utf8.Valid(v.text) {
		v.text = nil
		return invalidMetadata("A12", place(), "is not UTF-8")
	}
	return nil
}

// verify makes the checks A11 to A13 for all rows.
func (x *metadata) verify() error {
	var v Value
	for i := range x.blocks {
		b, err := x.batch(i)
		if err != nil {
			return err
		}
		for j, f := range x.fields {
			if c := &b.columns[j]; c.nulls != 0 {
				if nulls := b.rows - x.validRows(c, b.rows); nulls != c.nulls {
					return invalidMetadata("A13", fmt.Sprintf("batch %d, field %q", i, f.Name), "null_count is %d, the bitmap has %d", c.nulls, nulls)
				}
			}
			for row := uint64(0); f.Type == Utf8 && row < b.rows; row++ {
				if err := x.value(b, row, j, &v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// validRows counts the one bits among the first rows of a validity buffer.
func (x *metadata) validRows(c *column, rows uint64) uint64 {
	count := 0
	bitmap := x.data[c.validity.offset : c.validity.offset+(rows+7)/8]
	for i, b := range bitmap {
		if left := rows - 8*uint64(i); left < 8 {
			b &= 1<<left - 1
		}
		count += bits.OnesCount8(b)
	}
	return uint64(count)
}
