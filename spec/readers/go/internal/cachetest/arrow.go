package cachetest

import (
	"math"

	"datasetrt"
)

const batchRows = 65536

// Metadata writes metadata.arrow.
func Metadata(rows []Row) []byte {
	data := append([]byte("ARROW1\x00\x00"), message(1, 0, schemaOf)...)
	var blocks []byte
	count := 0
	for begin := 0; begin < len(rows); begin += batchRows {
		data = pad(data, 64)
		body, buffers, nodes := batchBody(rows[begin:min(begin+batchRows, len(rows))])
		head := message(3, len(body), func(f *flat) int {
			pos, at := f.table(slot{8, uint64(min(batchRows, len(rows)-begin))}, slot{4, 0}, slot{4, 0})
			f.vector(at[1], len(nodes)/16, nodes)
			f.vector(at[2], len(buffers)/16, buffers)
			return pos
		})
		blocks = le.AppendUint64(blocks, uint64(len(data)))
		blocks = le.AppendUint64(blocks, uint64(len(head)))
		blocks = le.AppendUint64(blocks, uint64(len(body)))
		data = append(append(data, head...), body...)
		count++
	}
	data = pad(data, 8)
	data = append(data, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0)
	f := &flat{data: make([]byte, 8)}
	root, at := f.table(slot{2, 4}, slot{4, 0}, slot{4, 0}, slot{4, 0})
	f.put32(0, uint32(root))
	schema := schemaOf(f)
	f.put32(at[1], uint32(schema-at[1]))
	f.vector(at[2], 0, nil)
	f.vector(at[3], count, blocks)
	f.align(8)
	data = append(data, f.data...)
	data = le.AppendUint32(data, uint32(len(f.data)))
	return append(data, "ARROW1"...)
}

// message frames a message whose header table build writes.
func message(kind, bodyLength int, build func(*flat) int) []byte {
	f := &flat{data: make([]byte, 8)}
	root, at := f.table(slot{2, 4}, slot{1, uint64(kind)}, slot{4, 0}, slot{8, uint64(bodyLength)})
	f.put32(0, uint32(root))
	header := build(f)
	f.put32(at[2], uint32(header-at[2]))
	f.align(8)
	data := []byte{0xFF, 0xFF, 0xFF, 0xFF}
	return append(le.AppendUint32(data, uint32(len(f.data))), f.data...)
}

func schemaOf(f *flat) int {
	pos, at := f.table(slot{}, slot{4, 0})
	f.vector(at[1], len(Fields), make([]byte, 4*len(Fields)))
	offsets := len(f.data) - 4*len(Fields)
	for i, field := range Fields {
		nullable := uint64(0)
		if field.Nullable {
			nullable = 1
		}
		code := map[datasetrt.FieldType]uint64{datasetrt.Int64: 2, datasetrt.Float64: 3, datasetrt.Utf8: 5, datasetrt.Bool: 6}[field.Type]
		table, slots := f.table(slot{4, 0}, slot{1, nullable}, slot{1, code}, slot{4, 0})
		f.put32(offsets+4*i, uint32(table-(offsets+4*i)))
		f.text(slots[0], field.Name)
		var typ int
		switch field.Type {
		case datasetrt.Int64:
			typ, _ = f.table(slot{4, 64}, slot{1, 1})
		case datasetrt.Float64:
			typ, _ = f.table(slot{2, 2})
		default:
			typ, _ = f.table()
		}
		f.put32(slots[3], uint32(typ-slots[3]))
	}
	return pos
}

func batchBody(rows []Row) (body, buffers, nodes []byte) {
	add := func(data []byte) {
		body = pad(body, 64)
		buffers = le.AppendUint64(le.AppendUint64(buffers, uint64(len(body))), uint64(len(data)))
		body = append(body, data...)
	}
	bitmap := func(set func(Row) bool) []byte {
		bits := make([]byte, (len(rows)+7)/8)
		for i, r := range rows {
			if set(r) {
				bits[i/8] |= 1 << (i % 8)
			}
		}
		return bits
	}
	var labels, scores, texts []byte
	offsets := make([]byte, 4)
	nulls := 0
	for _, r := range rows {
		labels = le.AppendUint64(labels, uint64(r.Label))
		scores = le.AppendUint64(scores, math.Float64bits(r.Score))
		if r.Name == nil {
			nulls++
		} else {
			texts = append(texts, *r.Name...)
		}
		offsets = le.AppendUint32(offsets, uint32(len(texts)))
	}
	add(nil)
	add(labels)
	add(nil)
	add(scores)
	if nulls > 0 {
		add(bitmap(func(r Row) bool { return r.Name != nil }))
	} else {
		add(nil)
	}
	add(offsets)
	add(texts)
	add(nil)
	add(bitmap(func(r Row) bool { return r.Flag }))
	body = pad(body, 64)
	for i := range Fields {
		n := uint64(0)
		if i == 2 {
			n = uint64(nulls)
		}
		nodes = le.AppendUint64(le.AppendUint64(nodes, uint64(len(rows))), n)
	}
	return body, buffers, nodes
}
