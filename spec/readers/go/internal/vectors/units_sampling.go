package vectors

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"datasetrt/sampling"
)

var samplingUnits = map[string]unit{
	"philox": func(in *input, _ string) any {
		c, k := in.u64s("counter"), in.u64s("key")
		if len(c) != 4 || len(k) != 2 {
			in.refuse(fmt.Errorf("a counter has 4 words, a key 2"))
			return nil
		}
		out := sampling.Philox([4]uint32{uint32(c[0]), uint32(c[1]), uint32(c[2]), uint32(c[3])}, [2]uint32{uint32(k[0]), uint32(k[1])})
		return u64s(out[:])
	},
	"blocks": func(in *input, _ string) any {
		return u128(sampling.NewBlock(in.u64("key"), in.u64("index"), in.u32("stream"), sampling.Domain(in.u32("domain")), in.u32("sub")))
	},
	"scale": func(in *input, _ string) any { return u64(in.block("x").Scale(in.u64("m"))) },
	"mix":   func(in *input, _ string) any { return u64(sampling.Mix(in.u64("x"))) },
	"ordered": func(in *input, _ string) any {
		return drawn(in, sampling.Ordered, nil)
	},
	"draws-equal": func(in *input, _ string) any { return drawn(in, sampling.Weighted, nil) },
	"draws":       func(in *input, _ string) any { return drawn(in, sampling.Weighted, in.floats("weights")) },
	"permutation-positions": func(in *input, _ string) any {
		return drawn(in, sampling.PermutationMode, nil)
	},
	"weighted-order-positions": func(in *input, _ string) any {
		return drawn(in, sampling.WeightedOrdering, in.floats("weights"))
	},
	"tickets": func(in *input, _ string) any {
		tickets, sum := sampling.Tickets(in.floats("weights"))
		return node{"tickets": u64s(tickets), "sum": u64(sum)}
	},
	"modes": func(in *input, _ string) any {
		mode, err := sampling.ModeOf(in.boolean("shuffle"), in.boolean("replacement"), in.floats("weights"))
		if err != nil {
			in.refuse(err)
		}
		return text(string(mode))
	},
	"permutation-number": func(in *input, _ string) any {
		return u64(sampling.PermutationNumber(in.u64("seed"), in.u64("pass"), in.u32("stream"), in.u64("rows")))
	},
	"permutation-small": wholePass,
	"permutation-large": wholePass,
	"permutation-points": func(in *input, _ string) any {
		a, b := sampling.Sides(in.u64("rows"))
		p := permutation(in)
		var rows []uint64
		for _, place := range in.u64s("places") {
			row := p.Row(place)
			if p.Place(row) != place {
				in.refuse(fmt.Errorf("the inverse of row %d is not place %d", row, place))
			}
			rows = append(rows, row)
		}
		return node{"sides": u64s([]uint64{a, b}), "rows": u64s(rows)}
	},
	"round-keys": func(in *input, _ string) any {
		keys := sampling.RoundKeys(in.u64("seed"), in.u64("pass"), in.u32("stream"))
		return u64s(keys[:])
	},
	"exponential": func(in *input, _ string) any { return float(sampling.Exponential(in.u64("x"))) },
	"race":        func(in *input, _ string) any { return u64(sampling.RaceKey(in.float("e"), in.float("weight"))) },
	"weighted-order": func(in *input, _ string) any {
		seed, pass, stream, weights := in.u64("seed"), in.u64("pass"), in.u32("stream"), in.floats("weights")
		return node{
			"keys":  u64s(sampling.RaceKeys(seed, pass, stream, weights)),
			"order": u64s(sampling.WeightedOrder(seed, pass, stream, weights)),
		}
	},
	"ranks":           ranks,
	"workers":         workers,
	"caches-digest":   cachesDigest,
	"table-digest":    tableDigest,
	"position":        position,
	"position-ranges": position,
}

// drawn gives the rows of the positions of a case.
func drawn(in *input, mode sampling.Mode, weights []float64) any {
	seed, stream := uint64(0), uint32(0)
	if mode != sampling.Ordered {
		seed, stream = in.u64("seed"), in.u32("stream")
	}
	var s *sampling.Stream
	var err error
	if weights != nil {
		s, err = sampling.NewWeightedStream(mode, seed, stream, weights)
	} else {
		s, err = sampling.NewStream(mode, seed, stream, in.u64("rows"))
	}
	if err != nil {
		in.refuse(err)
		return nil
	}
	var rows []uint64
	for _, p := range in.u64s("positions") {
		rows = append(rows, s.Row(p))
	}
	return u64s(rows)
}

func permutation(in *input) *sampling.Permutation {
	return sampling.NewPermutation(in.u64("seed"), in.u64("pass"), in.u32("stream"), in.u64("rows"))
}

func wholePass(in *input, _ string) any {
	p := permutation(in)
	var order, inverse []uint64
	for i := range in.u64("rows") {
		order, inverse = append(order, p.Row(i)), append(inverse, p.Place(i))
	}
	return node{"order": u64s(order), "inverse": u64s(inverse)}
}

func ranks(in *input, _ string) any {
	window := sampling.Window{Start: in.u64("start"), Len: in.u64("length")}
	r, err := sampling.NewRank(sampling.Policy(in.text("policy")), window, in.u64("delivered"), in.u64("ranks"), in.u64("rank"))
	if err != nil {
		return node{"refused": boolean(true)}
	}
	var positions []uint64
	var paddings []bool
	for step := range r.Steps() {
		p, padding := r.Position(step)
		positions, paddings = append(positions, p), append(paddings, padding)
	}
	return node{"positions": u64s(positions), "padding": booleans(paddings)}
}

func workers(in *input, _ string) any {
	workers, worker, batch := in.u64("workers"), in.u64("worker"), in.u64("batch")
	var steps []uint64
	for step := range in.u64("steps") {
		if sampling.Worker(step, workers, worker, batch) {
			steps = append(steps, step)
		}
	}
	return u64s(steps)
}

func cachesDigest(in *input, _ string) any {
	var identities [][32]byte
	for _, s := range in.get("identities", "bytes").Values {
		identities = append(identities, [32]byte(in.hex(s)))
	}
	sum := sampling.CachesDigest(identities)
	return text(hex.EncodeToString(sum[:]))
}

func tableDigest(in *input, _ string) any {
	caches, samples := in.u64s("cache"), in.u64s("sample")
	var weights []float64
	if in.has("weights") {
		weights = in.floats("weights")
	}
	rows := make([]sampling.TableRow, len(caches))
	for i := range rows {
		rows[i] = sampling.TableRow{Cache: caches[i], Sample: samples[i]}
	}
	runs := []any{}
	for _, r := range sampling.Runs(rows, weights) {
		run := node{"cache": u64(r.Cache), "first": u64(r.First), "count": u64(r.Count)}
		if weights != nil {
			run["weight_bits"] = u64(math.Float64bits(r.Weight))
		}
		runs = append(runs, run)
	}
	sum := sampling.TableDigest(rows, weights)
	return node{"runs": runs, "digest": text(hex.EncodeToString(sum[:]))}
}

func position(in *input, _ string) any {
	_, err := sampling.ParsePosition(in.members["position"])
	var refused *sampling.PositionError
	if errors.As(err, &refused) {
		return node{"accepted": boolean(false), "member": text(refused.Member)}
	}
	return node{"accepted": boolean(err == nil)}
}
