package sampling

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// CachesDigest is the digest of the identities of the loaded caches, in the order of loading.
func CachesDigest(identities [][32]byte) [32]byte {
	hash := sha256.New()
	for _, id := range identities {
		hash.Write(id[:])
	}
	return [32]byte(hash.Sum(nil))
}

// TableRow is a row of the active table: a sample of one of the loaded caches.
type TableRow struct{ Cache, Sample uint64 }

// Run is a run of consecutive rows of a table.
type Run struct {
	Cache, First, Count uint64
	// Weight is that of all rows of the run; 0 in runs without weights.
	Weight float64
}

// Runs cuts a table into its runs; weights is nil where the rows digest is meant, else one weight a row.
func Runs(rows []TableRow, weights []float64) []Run {
	var runs []Run
	for i, row := range rows {
		w := 0.0
		if weights != nil {
			w = weights[i]
		}
		if n := len(runs); n > 0 {
			r := &runs[n-1]
			if r.Cache == row.Cache && r.First+r.Count == row.Sample && math.Float64bits(r.Weight) == math.Float64bits(w) {
				r.Count++
				continue
			}
		}
		runs = append(runs, Run{row.Cache, row.Sample, 1, w})
	}
	return runs
}

// TableDigest is the rows digest of a table or, with weights, its weights digest.
func TableDigest(rows []TableRow, weights []float64) [32]byte {
	le, hash := binary.LittleEndian, sha256.New()
	hash.Write([]byte("dataset_rt table 1\x00"))
	var buffer []byte
	for _, r := range Runs(rows, weights) {
		buffer = le.AppendUint64(le.AppendUint64(le.AppendUint64(buffer[:0], r.Cache), r.First), r.Count)
		if weights != nil {
			buffer = le.AppendUint64(buffer, math.Float64bits(r.Weight))
		}
		hash.Write(buffer)
	}
	return [32]byte(hash.Sum(nil))
}
