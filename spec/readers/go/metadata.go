package datasetrt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"
	"sync/atomic"
)

const (
	metadataName = "metadata.arrow"
	arrowV5      = 4

	typeInt   = 2
	typeFloat = 3
	typeUtf8  = 5
	typeBool  = 6

	headerRecordBatch = 3

	// keptColumns is how many columns of batches are kept parsed: of many small batches with many fields the
	// parsed form is much larger than the headers.
	keptColumns = 1 << 20
)

var arrowMagic = []byte("ARROW1\x00\x00")

// metadata is an opened metadata.arrow.
type metadata struct {
	*summed
	fields  []Field
	buffers int // of a batch
	blocks  []arrowBlock
	parsed  []*batch // nil where there are more than keptColumns
	last    atomic.Pointer[batch]
}

// arrowBlock is where a record batch is, and its first row.
type arrowBlock struct {
	offset, metaLength, bodyLength uint64
	first                          uint64
}

func invalidMetadata(check, place, format string, args ...any) error {
	return fail(MetadataInvalid, check, metadataName, place, format, args...)
}

// openMetadata makes the checks A2 to A10, and A1 for the blocks these need.
func openMetadata(data, sums []byte, m *Manifest) (*metadata, error) {
	x := &metadata{summed: newSummed(data, sums, MetadataDamaged, "A1", metadataName, "file"), fields: m.Fields}
	for _, f := range m.Fields {
		x.buffers += buffersOf(f.Type)
	}
	size := uint64(len(data))
	if size < 26 {
		return nil, invalidMetadata("A2", "", "%d bytes are too short for an Arrow file", size)
	}
	if err := x.need(0, 8); err != nil {
		return nil, err
	}
	if err := x.need(size-10, 10); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(data, arrowMagic) || !bytes.HasSuffix(data, arrowMagic[:6]) {
		return nil, invalidMetadata("A2", "", "another magic")
	}
	length := int32(binary.LittleEndian.Uint32(data[size-10:]))
	if length < 8 || uint64(length) > size-10-8 {
		return nil, invalidMetadata("A2", "", "a footer of %d bytes doesn't fit", length)
	}
	begin := size - 10 - uint64(length)
	if err := x.need(begin, uint64(length)); err != nil {
		return nil, err
	}
	if err := x.readFooter(begin, &flatbuffer{data: data[begin : size-10]}); err != nil {
		return nil, err
	}
	return x, x.openBatches(m.Samples)
}

func buffersOf(t FieldType) int {
	if t == Utf8 {
		return 3
	}
	return 2
}

// readFooter makes the checks A3 to A5.
func (x *metadata) readFooter(begin uint64, f *flatbuffer) error {
	root := f.root()
	if version := f.slotI16(root, 0); !f.bad && version != arrowV5 {
		return invalidMetadata("A3", "footer", "version is %d, should be 4 (V5)", version)
	}
	schema, ok := f.slotTable(root, 1)
	if !ok {
		return invalidMetadata("A3", "footer", "no sound schema")
	}
	if err := x.checkSchema(f, schema); err != nil {
		return err
	}
	dictionaries, batches := f.slotVector(root, 2, 24), f.slotVector(root, 3, 24)
	if f.bad {
		return invalidMetadata("A3", "footer", "leads out of itself")
	}
	if dictionaries.count != 0 {
		return invalidMetadata("A4", "footer", "%d dictionary blocks, none is allowed", dictionaries.count)
	}
	x.blocks = make([]arrowBlock, batches.count)
	end := uint64(8)
	for i := range x.blocks {
		pos := batches.pos + 24*i
		offset, metaLength, bodyLength := f.i64(pos), int32(f.u32(pos+8)), f.i64(pos+16)
		place := fmt.Sprintf("batch %d", i)
		if offset < 8 || offset%8 != 0 || metaLength < 16 || metaLength%8 != 0 || bodyLength < 0 {
			return invalidMetadata("A5", place, "Block of offset %d, metaDataLength %d, bodyLength %d", offset, metaLength, bodyLength)
		}
		b := arrowBlock{offset: uint64(offset), metaLength: uint64(metaLength), bodyLength: uint64(bodyLength)}
		// None of the three is above 2^63, so a sum of two doesn't overflow once the first was compared.
		if b.offset > begin || b.metaLength > begin-b.offset || b.bodyLength > begin-b.offset-b.metaLength {
			return invalidMetadata("A5", place, "reaches into the footer")
		}
		if b.offset < end {
			return invalidMetadata("A5", place, "offset is %d, the Block before ends at %d", offset, end)
		}
		end = b.offset + b.metaLength + b.bodyLength
		x.blocks[i] = b
	}
	return nil
}

// checkSchema makes check A4 and, for the schema, A3.
func (x *metadata) checkSchema(f *flatbuffer, schema table) error {
	endianness, fields := f.slotI16(schema, 0), f.slotVector(schema, 1, 4)
	if f.bad {
		return invalidMetadata("A3", "footer", "leads out of itself")
	}
	if endianness != 0 {
		return invalidMetadata("A4", "schema", "not little-endian")
	}
	if fields.count != len(x.fields) {
		return invalidMetadata("A4", "schema", "%d fields, the manifest has %d", fields.count, len(x.fields))
	}
	// Vectors of custom metadata may share their bytes; the budget keeps a small footer from taking long.
	budget := 1<<16 + 4*len(f.data)
	for i, want := range x.fields {
		place := fmt.Sprintf("field %d", i)
		field := f.tableAt(f.follow(fields.pos + 4*i))
		name, nullable := f.slotText(field, 0), f.slotU8(field, 1) != 0
		typ, ok := arrowType(f, field)
		_, dictionary := f.slotTable(field, 4)
		children, custom := f.slotVector(field, 5, 4), f.slotVector(field, 6, 4)
		budget -= custom.count
		extension := budget >= 0 && hasExtension(f, custom)
		switch {
		case f.bad:
			return invalidMetadata("A3", place, "leads out of the footer")
		case string(name) != want.Name:
			return invalidMetadata("A4", place, "is named %.80q, in the manifest %.80q", name, want.Name)
		case nullable != want.Nullable:
			return invalidMetadata("A4", place, "nullable is %t, in the manifest %t", nullable, want.Nullable)
		case !ok || typ != want.Type:
			return invalidMetadata("A4", place, "has not the manifest's type %v", want.Type)
		case dictionary || children.count != 0 || extension:
			return invalidMetadata("A4", place, "has a dictionary, children or an extension type")
		case budget < 0:
			return invalidMetadata("A4", place, "has more custom metadata than fits into the footer")
		}
	}
	return nil
}

func arrowType(f *flatbuffer, field table) (FieldType, bool) {
	code := f.slotU8(field, 2)
	typ, ok := f.slotTable(field, 3)
	if !ok {
		return 0, false
	}
	switch code {
	case typeInt:
		return Int64, f.slotI32(typ, 0) == 64 && f.slotU8(typ, 1) != 0
	case typeFloat:
		return Float64, f.slotI16(typ, 0) == 2
	case typeUtf8:
		return Utf8, true
	case typeBool:
		return Bool, true
	}
	return 0, false
}

func hasExtension(f *flatbuffer, custom vector) bool {
	found := false
	for i := 0; i < custom.count && !f.bad; i++ {
		pair := f.tableAt(f.follow(custom.pos + 4*i))
		found = found || bytes.HasPrefix(f.slotText(pair, 0), []byte("ARROW:extension:"))
	}
	return found
}

// openBatches makes the checks A6 to A10.
func (x *metadata) openBatches(samples uint64) error {
	keep := len(x.blocks)*max(len(x.fields), 1) <= keptColumns
	rows := uint64(0)
	for i := range x.blocks {
		x.blocks[i].first = rows
		b, err := x.readBatch(i, samples-rows)
		if err != nil {
			return err
		}
		rows += b.rows
		if keep {
			x.parsed = append(x.parsed, b)
		}
	}
	if rows != samples {
		return invalidMetadata("A8", "", "batches have %d rows, the cache has %d samples", rows, samples)
	}
	return nil
}

// batch gives batch i, which was found sound when the file was opened.
func (x *metadata) batch(i int) (*batch, error) {
	if x.parsed != nil {
		return x.parsed[i], nil
	}
	if b := x.last.Load(); b != nil && b.number == i {
		return b, nil
	}
	b, err := x.readBatch(i, 1<<62)
	if err == nil {
		x.last.Store(b)
	}
	return b, err
}

// find gives the batch that holds a row; hint, which may be nil, is one that might hold it or come before it.
func (x *metadata) find(row uint64, hint *batch) (*batch, error) {
	if hint != nil {
		if row-hint.first < hint.rows {
			return hint, nil
		}
		if row == hint.first+hint.rows {
			return x.batch(hint.number + 1)
		}
	}
	return x.batch(sort.Search(len(x.blocks), func(i int) bool { return x.blocks[i].first > row }) - 1)
}
