package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"datasetrt"
	"datasetrt/sampling"
)

type orderRequest struct{ Mode, Seed, Stream, Start, Count string }

// order prints the row numbers of a window. The active table is every sample once, with its number + 1 as weight.
func order(dir, request string, out, problems io.Writer) (int, error) {
	var r orderRequest
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		return exitUsage, fmt.Errorf("%w: --order: %w", errUsage, err)
	}
	var numbers [4]uint64
	for i, s := range []string{r.Seed, r.Stream, r.Start, r.Count} {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return exitUsage, fmt.Errorf("%w: --order: %w", errUsage, err)
		}
		numbers[i] = n
	}
	window := sampling.Window{Start: numbers[2], Len: numbers[3]}
	if err := window.Check(); err != nil || numbers[1] > 1<<32-1 {
		return exitUsage, fmt.Errorf("%w: --order: stream %d, %v", errUsage, numbers[1], err)
	}
	c, err := datasetrt.Open(dir)
	if err != nil {
		return refuse(err, out, problems)
	}
	defer c.Close()
	stream, err := newStream(r.Mode, numbers[0], uint32(numbers[1]), c.Len())
	if err != nil {
		return exitUsage, fmt.Errorf("%w: --order: %w", errUsage, err)
	}
	rows := []string{}
	for row := range stream.Rows(window) {
		rows = append(rows, strconv.FormatUint(row, 10))
	}
	return 0, write(out, map[string]any{"type": "uint64", "values": rows})
}

func newStream(mode string, seed uint64, stream uint32, rows uint64) (*sampling.Stream, error) {
	if mode == "weighted" || mode == "weighted_order" {
		weights := make([]float64, rows)
		for i := range weights {
			weights[i] = float64(i + 1)
		}
		return sampling.NewWeightedStream(sampling.Mode(mode), seed, stream, weights)
	}
	return sampling.NewStream(sampling.Mode(mode), seed, stream, rows)
}
