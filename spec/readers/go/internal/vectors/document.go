package vectors

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"datasetrt"
)

const (
	allShown     = 32 // caches of more samples show three times eight
	partShown    = 8
	payloadShown = 256 // longer payloads are shown by their digest
)

// Document verifies a cache and gives its content in the form of expected.json. An error is one of the cache.
func Document(dir string, allRows bool) (map[string]any, error) {
	c, err := datasetrt.OpenVerified(dir)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	m := c.Manifest()
	fields, rows := []any{}, []any{}
	for _, f := range m.Fields {
		fields = append(fields, node{"name": text(f.Name), "type": text(f.Type.String()), "nullable": boolean(f.Nullable)})
	}
	hash := sha256.New()
	for s, err := range c.All() {
		if err != nil {
			return nil, err
		}
		hash.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s.Payload))))
		hash.Write(s.Payload)
		if allRows || shown(s.Index, m.Samples) {
			rows = append(rows, node{"index": u64(s.Index), "payload": payload(s.Payload), "values": values(s.Values)})
		}
	}
	return node{
		"outcome": "valid", "identity": bytesOf(m.Identity[:]), "samples": u64(m.Samples), "fields": fields,
		"payloads_sha256": bytesOf(hash.Sum(nil)), "rows": rows,
	}, nil
}

// Refused gives the document of a cache that was refused.
func Refused(err error) map[string]any {
	return node{"outcome": "invalid", "code": string(datasetrt.CodeOf(err))}
}

func shown(i, samples uint64) bool {
	middle := samples / 2
	return samples <= allShown || i < partShown || i >= middle && i < middle+partShown || i >= samples-partShown
}

func payload(data []byte) node {
	if len(data) <= payloadShown {
		return bytesOf(data)
	}
	sum := sha256.Sum256(data)
	return tag("bytes_digest", fmt.Sprintf("%d:%s", len(data), hex.EncodeToString(sum[:])))
}

func values(list []datasetrt.Value) []any {
	out := make([]any, 0, len(list))
	for _, v := range list {
		switch {
		case v.IsNull():
			out = append(out, null())
		case v.Type() == datasetrt.Bool:
			out = append(out, boolean(v.Bool()))
		case v.Type() == datasetrt.Int64:
			out = append(out, tag("int64", fmt.Sprint(v.Int64())))
		case v.Type() == datasetrt.Float64:
			out = append(out, tag("float64", fmt.Sprintf("%016x", v.Float64Bits())))
		default:
			out = append(out, text(v.Text()))
		}
	}
	return slices.Clip(out)
}
