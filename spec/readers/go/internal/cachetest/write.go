// Package cachetest writes small and middle-sized caches for tests and measurements. It is no writer for users:
// everything is made in memory, in one shard or a few, and nothing is flushed.
package cachetest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"datasetrt"
)

// Row is a sample of a test cache. Its fields are "label" (int64), "score" (float64), "name" (utf8, nullable) and "flag" (bool).
type Row struct {
	Payload []byte
	Label   int64
	Score   float64
	// Name is nil for a null.
	Name *string
	Flag bool
}

// Fields are the fields of test caches.
var Fields = []datasetrt.Field{
	{Name: "label", Type: datasetrt.Int64},
	{Name: "score", Type: datasetrt.Float64},
	{Name: "name", Type: datasetrt.Utf8, Nullable: true},
	{Name: "flag", Type: datasetrt.Bool},
}

var le = binary.LittleEndian

func crc(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

func pad(data []byte, n int) []byte {
	for len(data)%n != 0 {
		data = append(data, 0)
	}
	return data
}

// content is what the identity is computed from.
type content []Row

func (c content) Payload(i uint64) (rawLen, sum uint32, err error) {
	return uint32(len(c[i].Payload)), crc(c[i].Payload), nil
}

func (c content) Value(i uint64, j int, v *datasetrt.Value) error {
	switch r := c[i]; j {
	case 0:
		*v = datasetrt.Int64Value(r.Label)
	case 1:
		*v = datasetrt.Float64Value(r.Score)
	case 2:
		*v = datasetrt.NullValue(datasetrt.Utf8)
		if r.Name != nil {
			*v = datasetrt.TextValue(*r.Name)
		}
	case 3:
		*v = datasetrt.BoolValue(r.Flag)
	}
	return nil
}

type file struct {
	Name string `json:"name"`
	Size int    `json:"size"`
	CRC  string `json:"crc32c"`
}

func fileOf(name string, data []byte) file {
	return file{name, len(data), fmt.Sprintf("%08x", crc(data))}
}

type shardFile struct {
	file
	Samples int    `json:"samples"`
	ID      string `json:"id"`
}

// Write writes a cache without a codec into dir, which must exist; perShard is how many samples a shard gets.
func Write(dir string, rows []Row, perShard int) error {
	return WriteChanged(dir, rows, perShard, func(metadata []byte) []byte { return metadata })
}

// WriteChanged is like [Write], but changes metadata.arrow before sums are made of it.
func WriteChanged(dir string, rows []Row, perShard int, change func(metadata []byte) []byte) error {
	identity, err := datasetrt.Identity(uint64(len(rows)), Fields, content(rows))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "shards"), 0o755); err != nil {
		return err
	}
	var entries []byte
	var shards []shardFile
	bytes := 0
	for first := 0; first < len(rows); first += perShard {
		part := rows[first:min(first+perShard, len(rows))]
		data, id := shard(part, first, len(shards), first+perShard >= len(rows), &entries)
		name := fmt.Sprintf("%06d", len(shards))
		if err := os.WriteFile(filepath.Join(dir, "shards", name+".bin"), data, 0o644); err != nil {
			return err
		}
		shards = append(shards, shardFile{fileOf(name, data), len(part), fmt.Sprintf("%x", id)})
		for _, r := range part {
			bytes += len(r.Payload)
		}
	}
	metadata := change(Metadata(rows))
	index := index(entries, sums(metadata), len(rows), len(shards), identity)
	var fields []any
	for _, f := range Fields {
		fields = append(fields, map[string]any{"name": f.Name, "type": f.Type.String(), "nullable": f.Nullable})
	}
	manifest := Manifest(map[string]any{
		"required": []string{}, "optional": []string{}, "identity": fmt.Sprintf("%x", identity),
		"source": map[string]any{"name": "test", "fingerprint": nil}, "created": "2026-01-02T03:04:05Z", "writer": "test",
		"samples": len(rows), "payload_bytes": bytes, "stored_bytes": bytes, "fields": fields,
		"codec": map[string]any{"name": "none"}, "alignment": 8, "shards": shards,
		"metadata": fileOf("metadata.arrow", metadata), "index": fileOf("index.bin", index),
	})
	for name, data := range map[string][]byte{"metadata.arrow": metadata, "index.bin": index, "manifest.json": manifest} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Manifest frames the members of a manifest.
func Manifest(members map[string]any) []byte {
	body, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	body = append([]byte(`{"format":"dataset_rt.cache","version":1,`), body[1:len(body)-1]...)
	return fmt.Appendf(body, ",\"sha256\":\"%x\"}\n", sha256.Sum256(body))
}

func shard(rows []Row, first, ordinal int, last bool, entries *[]byte) ([]byte, [16]byte) {
	data := []byte{0x89, 'D', 'R', 'T', 'S', '\r', '\n', 0x1A, 1, 0, 0, 3}
	data = append(data, make([]byte, 12)...)
	data = le.AppendUint64(data, uint64(first))
	data = le.AppendUint32(data, uint32(ordinal))
	data = append(data, make([]byte, 24)...)
	data = le.AppendUint32(data, crc(data))
	header := data[:64:64]
	var footer []byte
	for _, r := range rows {
		data = pad(data, 8)
		sum := crc(r.Payload)
		*entries = le.AppendUint64(*entries, uint64(ordinal)<<40|uint64(len(data)))
		for _, to := range []*[]byte{entries, &footer} {
			*to = le.AppendUint32(le.AppendUint32(*to, uint32(len(r.Payload))), sum)
		}
		data = append(data, r.Payload...)
	}
	data = pad(data, 64)
	begin, count := len(data), le.AppendUint64(nil, uint64(len(rows)))
	data = append(data, footer...)
	hash := sha256.New()
	hash.Write(header)
	hash.Write(footer)
	hash.Write(count)
	id := [16]byte(hash.Sum(nil))
	trailer := le.AppendUint64(count, uint64(begin))
	trailer = le.AppendUint64(trailer, uint64(len(data)+64))
	trailer = append(trailer, id[:]...)
	trailer = le.AppendUint32(trailer, crc(footer))
	flags := uint32(0)
	if last {
		flags = 1
	}
	trailer = le.AppendUint32(le.AppendUint32(trailer, flags), 1)
	trailer = le.AppendUint32(trailer, crc(trailer))
	trailer = append(trailer, 0x1A, '\n', '\r', 'S', 'T', 'R', 'D', 0x89)
	return append(data, trailer...), id
}

func sums(data []byte) []byte {
	var out []byte
	for _, sum := range datasetrt.BlockSums(data) {
		out = le.AppendUint32(out, sum)
	}
	return out
}

func index(entries, metadataSums []byte, samples, shards int, identity [32]byte) []byte {
	sections := []struct {
		kind uint32
		data []byte
	}{{1, entries}, {17, sums(entries)}, {32, metadataSums}}
	var table, body []byte
	begin := (128 + 32*len(sections) + 63) / 64 * 64
	for _, s := range sections {
		body = pad(body, 64)
		table = le.AppendUint32(le.AppendUint32(table, s.kind), 0)
		table = le.AppendUint64(le.AppendUint64(table, uint64(begin+len(body))), uint64(len(s.data)))
		sum := uint32(0)
		if s.kind >= 16 {
			sum = crc(s.data)
		}
		table = le.AppendUint32(le.AppendUint32(table, sum), 0)
		body = append(body, s.data...)
	}
	head := []byte{0x89, 'D', 'R', 'T', 'I', '\r', '\n', 0x1A, 1, 0, 0, 3, 0, 0, 0, 0}
	head = le.AppendUint64(le.AppendUint64(head, uint64(samples)), uint64(shards))
	head = le.AppendUint64(head, uint64(begin+len(body)))
	head = le.AppendUint64(head, uint64(len(sections)))
	head = append(append(head, identity[:]...), make([]byte, 44)...)
	sum := crc(append(append([]byte{}, head...), table...))
	head = append(le.AppendUint32(head, sum), table...)
	return append(pad(head, 64), body...)
}
