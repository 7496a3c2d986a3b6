package datasetrt_test

import (
	"fmt"
	"testing"

	"datasetrt"
	"datasetrt/internal/cachetest"
)

// rowsOf makes test rows with payloads of size bytes; every fifth name is null.
func rowsOf(n, size int) []cachetest.Row {
	rows := make([]cachetest.Row, n)
	state := uint64(1)
	for i := range rows {
		payload := make([]byte, size)
		for j := range payload {
			state = state*6364136223846793005 + 1442695040888963407
			payload[j] = byte(state >> 56)
		}
		rows[i] = cachetest.Row{Payload: payload, Label: int64(i) - 3, Score: float64(i) / 7, Flag: i%3 == 0}
		if i%5 != 0 {
			name := fmt.Sprintf("näme %d", i)
			rows[i].Name = &name
		}
	}
	return rows
}

func BenchmarkAll(b *testing.B) {
	const records = 20000
	dir := b.TempDir()
	if err := cachetest.Write(dir, rowsOf(records, 1024), records/4); err != nil {
		b.Fatal(err)
	}
	c, err := datasetrt.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.SetBytes(1024)
	b.ReportAllocs()
	var s datasetrt.Sample
	sum := int64(0)
	for i := uint64(0); b.Loop(); i++ {
		if err := c.Read(i%records, &s); err != nil {
			b.Fatal(err)
		}
		for _, v := range s.Values {
			sum += v.Int64() + int64(len(v.Bytes()))
		}
	}
	_ = sum
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
