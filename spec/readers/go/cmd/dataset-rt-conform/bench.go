package main

import (
	"fmt"
	"io"
	"time"

	"datasetrt"
)

// bench iterates over a cache: every payload is checked, every metadata value is read. The first epoch
// also checks the sums of blocks of index and metadata.
func bench(dir string, epochs int, out io.Writer) (int, error) {
	c, err := datasetrt.Open(dir)
	if err != nil {
		return exitRefused, err
	}
	defer c.Close()
	for epoch := range epochs {
		begin := time.Now()
		bytes, touched := uint64(0), uint64(0)
		for s, err := range c.All() {
			if err != nil {
				return exitRefused, err
			}
			bytes += uint64(len(s.Payload))
			touched += touch(s.Values)
		}
		seconds := time.Since(begin).Seconds()
		fmt.Fprintf(out, "epoch %d: %d records, %d payload bytes, metadata sum %x, %.3f s, %.0f records/s, %.2f GB/s\n",
			epoch, c.Len(), bytes, touched, seconds, float64(c.Len())/seconds, float64(bytes)/seconds/1e9)
	}
	return 0, nil
}

func touch(values []datasetrt.Value) uint64 {
	sum := uint64(0)
	for _, v := range values {
		sum += uint64(v.Int64()) + v.Float64Bits() + uint64(len(v.Bytes()))
		if v.IsNull() || v.Bool() {
			sum++
		}
	}
	return sum
}
