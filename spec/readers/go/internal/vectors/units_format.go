package vectors

import (
	"fmt"
	"path/filepath"
	"strconv"

	"datasetrt"
)

// unit computes the output of a case. folder is that of the vectors.
type unit func(in *input, folder string) any

var formatUnits = map[string]unit{
	"crc32c": func(in *input, _ string) any {
		crc := datasetrt.CRC32C(in.bytes("data"))
		return node{"number": u64(crc), "hex": text(fmt.Sprintf("%08x", crc))}
	},
	"block-sums": func(in *input, _ string) any {
		return u64s(datasetrt.BlockSums(make([]byte, in.u64("zero_bytes"))))
	},
	"lz4-blocks": func(in *input, _ string) any {
		dst := make([]byte, in.u64("raw_len"))
		if err := datasetrt.DecodeLZ4(dst, in.bytes("stored")); err != nil {
			return null()
		}
		return bytesOf(dst)
	},
	"shard-parts":   shardParts,
	"index-entries": indexEntry,
	"index-headers": indexHeader,
	"rotation": func(in *input, _ string) any {
		entry := uint64(8)
		if in.text("codec") != "none" {
			entry = 12
		}
		return u64s(rotation(in.u64s("stored_len"), in.u64("max_shard_bytes"), 1<<in.u64("align"), entry))
	},
	"batches":          func(in *input, _ string) any { return u64s(batches(in.u64s("rows"), in.u64s("bytes"))) },
	"identity":         identity,
	"identity-by-rule": identityByRule,
	"shard-names":      func(in *input, _ string) any { return boolean(datasetrt.ShardNameAllowed(in.text("name"))) },
	"manifest-tail": func(in *input, _ string) any {
		if err := datasetrt.CheckManifestEnvelope(in.bytes("manifest")); err != nil {
			return text(string(datasetrt.CodeOf(err)))
		}
		return text("ok")
	},
}

func shardParts(in *input, _ string) any {
	head, footer, tail := in.bytes("header"), in.bytes("footer"), in.bytes("trailer")
	if len(head) != 64 || len(tail) != 64 {
		in.refuse(fmt.Errorf("header or trailer hasn't 64 bytes"))
		return nil
	}
	h, err := datasetrt.ParseShardHeader([64]byte(head), "header")
	if err != nil {
		in.refuse(err)
		return nil
	}
	t, err := datasetrt.ParseShardTrailer([64]byte(tail), "trailer")
	if err != nil {
		in.refuse(err)
		return nil
	}
	records, err := datasetrt.ParseShardFooter(footer, t.Count, datasetrt.Codec(h.Codec))
	if err != nil {
		in.refuse(err)
		return nil
	}
	var offsets []uint64
	var stored, raw, crcs []uint32
	end := uint64(64)
	for _, r := range records {
		offset := up(end, 1<<h.Align)
		offsets, stored, raw, crcs = append(offsets, offset), append(stored, r.StoredLen), append(raw, r.RawLen), append(crcs, r.CRC)
		end = offset + uint64(r.StoredLen)
	}
	return node{
		"header": node{"codec": u64(h.Codec), "align": u64(h.Align), "part": u64(h.Part), "first": u64(h.First), "ordinal": u64(h.Ordinal)},
		"trailer": node{
			"count": u64(t.Count), "F": u64(t.Footer), "size": u64(t.Size), "id": bytesOf(t.ID[:]), "last": boolean(t.Flags&1 != 0),
		},
		"records": node{"offsets": u64s(offsets), "stored_len": u64s(stored), "raw_len": u64s(raw), "crc": u64s(crcs)},
	}
}

func indexEntry(in *input, _ string) any {
	data := in.bytes("entry")
	if len(data) != 16 {
		in.refuse(fmt.Errorf("an entry has 16 bytes"))
		return nil
	}
	e := datasetrt.ParseEntry([16]byte(data))
	return node{"shard": u64(e.Shard), "offset": u64(e.Offset), "stored_len": u64(e.StoredLen), "crc": u64(e.CRC)}
}

func indexHeader(in *input, _ string) any {
	h, err := datasetrt.ParseIndexHeader(in.bytes("head"))
	if err != nil {
		in.refuse(err)
		return nil
	}
	var kinds, flags, crcs []uint32
	var offsets, lengths []uint64
	for _, s := range h.Sections {
		kinds, flags, crcs = append(kinds, s.Kind), append(flags, s.Flags), append(crcs, s.CRC)
		offsets, lengths = append(offsets, s.Offset), append(lengths, s.Length)
	}
	return node{
		"codec": u64(h.Codec), "align": u64(h.Align), "samples": u64(h.Samples), "shards": u64(h.Shards), "size": u64(h.Size),
		"identity": bytesOf(h.Identity[:]),
		"sections": node{"kind": u64s(kinds), "flags": u64s(flags), "offset": u64s(offsets), "length": u64s(lengths), "crc": u64s(crcs)},
	}
}

// borrowed has lengths and CRCs of a case, and the columns of a valid cache.
type borrowed struct {
	lengths, crcs []uint64
	cache         *datasetrt.Cache
	sample        datasetrt.Sample
}

func (b *borrowed) Payload(i uint64) (rawLen, crc uint32, err error) {
	return uint32(b.lengths[i]), uint32(b.crcs[i]), nil
}

func (b *borrowed) Value(i uint64, j int, v *datasetrt.Value) error {
	err := b.cache.Row(i, &b.sample)
	if err == nil {
		*v = b.sample.Values[j]
	}
	return err
}

func identity(in *input, folder string) any {
	c, err := datasetrt.Open(filepath.Join(folder, "v1", "valid", filepath.Base(in.text("cache")), "cache"))
	if err != nil {
		in.refuse(err)
		return nil
	}
	defer c.Close()
	content := &borrowed{lengths: in.u64s("raw_len"), crcs: in.u64s("crc"), cache: c}
	id, err := datasetrt.Identity(uint64(len(content.lengths)), c.Manifest().Fields, content)
	if err != nil {
		in.refuse(err)
	}
	return bytesOf(id[:])
}

// ruled is the content that the note of the vector identity-by-rule describes.
type ruled struct{}

func (ruled) Payload(i uint64) (rawLen, crc uint32, err error) {
	return uint32(i % 7), uint32(i * 2654435761), nil
}

func (ruled) Value(i uint64, j int, v *datasetrt.Value) error {
	switch {
	case j == 0:
		*v = datasetrt.Int64Value(int64(i))
	case i%3 == 0:
		*v = datasetrt.NullValue(datasetrt.Utf8)
	default:
		*v = datasetrt.TextValue(strconv.FormatUint(i, 10))
	}
	return nil
}

func identityByRule(in *input, _ string) any {
	fields := []datasetrt.Field{{Name: "n", Type: datasetrt.Int64}, {Name: "t", Type: datasetrt.Utf8, Nullable: true}}
	id, err := datasetrt.Identity(in.u64("samples"), fields, ruled{})
	if err != nil {
		in.refuse(err)
	}
	return bytesOf(id[:])
}
