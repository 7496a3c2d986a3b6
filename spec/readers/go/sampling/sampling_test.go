package sampling_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"datasetrt/sampling"
)

// The examples of the algorithm's text; the vectors have many more cases.

func rows(t *testing.T, s *sampling.Stream, err error, start, n uint64) []uint64 {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(s.Rows(sampling.Window{Start: start, Len: n}))
}

func TestDraws(t *testing.T) {
	s, err := sampling.NewWeightedStream(sampling.Weighted, 42, 0, []float64{6, 3, 1})
	if got := rows(t, s, err, 0, 12); !slices.Equal(got, []uint64{1, 0, 0, 1, 0, 0, 1, 2, 0, 0, 0, 1}) {
		t.Error(got)
	}
	s, err = sampling.NewStream(sampling.Weighted, 42, 9, 10)
	if got := rows(t, s, err, 0, 5); !slices.Equal(got, []uint64{0, 5, 6, 2, 7}) {
		t.Error(got)
	}
}

func TestEqualWeightsNeedNoTable(t *testing.T) {
	weights := slices.Repeat([]float64{0.3}, 1000)
	table, err := sampling.NewWeightedStream(sampling.Weighted, 7, 0, weights)
	got := rows(t, table, err, 0, 500)
	plain, err := sampling.NewStream(sampling.Weighted, 7, 0, 1000)
	if want := rows(t, plain, err, 0, 500); !slices.Equal(got, want) {
		t.Error(got, want)
	}
}

func TestPermutationHoldsEachRowOnceAndHasAnInverse(t *testing.T) {
	for _, n := range []uint64{1, 2, 19, 20, 21, 22, 36, 37, 1000, 4095, 4097} {
		p := sampling.NewPermutation(3, 5, 1, n)
		seen := make([]bool, n)
		for place := range n {
			row := p.Row(place)
			if seen[row] || p.Place(row) != place {
				t.Fatalf("n %d, place %d, row %d", n, place, row)
			}
			seen[row] = true
		}
	}
	s, err := sampling.NewStream(sampling.PermutationMode, 42, 0, 5)
	if got := rows(t, s, err, 0, 10); !slices.Equal(got, []uint64{2, 0, 3, 1, 4, 1, 2, 0, 4, 3}) {
		t.Error(got)
	}
}

func TestSidesOfTablesBeyondTheRootsOfBinary64(t *testing.T) {
	for _, n := range []uint64{21, 1 << 52, 1<<52 + 1, 1<<62 - 1, 1 << 62, (1<<31 - 1) * (1<<31 - 1), (1<<30)*(1<<30) + 1} {
		a, b := sampling.Sides(n)
		if a%2 != 0 || a*a < n || (a-2)*(a-2) >= n || b != (n+a-1)/a {
			t.Errorf("n %d: %d, %d", n, a, b)
		}
	}
}

func TestWeightedOrder(t *testing.T) {
	s, err := sampling.NewWeightedStream(sampling.WeightedOrdering, 42, 0, []float64{1, 2, 3, 4})
	if got := rows(t, s, err, 0, 8); !slices.Equal(got, []uint64{3, 2, 1, 0, 2, 1, 3, 0}) {
		t.Error(got)
	}
}

func TestStreamsRefuseWhatTheyDoNotDefine(t *testing.T) {
	for _, weights := range [][]float64{nil, {0}, {1, -1}, {math.Inf(1)}, {math.NaN()}, {1, math.Copysign(0, -1)}} {
		if _, err := sampling.NewWeightedStream(sampling.Ordered, 0, 0, weights); err == nil {
			t.Error(weights)
		}
	}
	for _, n := range []uint64{0, 1<<62 + 1} {
		if _, err := sampling.NewStream(sampling.Ordered, 0, 0, n); err == nil {
			t.Error(n)
		}
	}
	if _, err := sampling.NewStream("random", 0, 0, 1); err == nil {
		t.Error("unknown mode")
	}
	if (sampling.Window{Start: 1 << 63, Len: 1}).Check() == nil || (sampling.Window{Start: 1<<63 - 1, Len: 1}).Check() != nil {
		t.Error("the end of the stream")
	}
}

func TestRanksShareAWindow(t *testing.T) {
	for _, policy := range []sampling.Policy{sampling.Pad, sampling.Drop} {
		count := map[uint64]int{}
		for rank := range uint64(3) {
			r, err := sampling.NewRank(policy, sampling.Window{Start: 100, Len: 10}, 0, 3, rank)
			if err != nil {
				t.Fatal(err)
			}
			for step := range r.Steps() {
				p, padding := r.Position(step)
				if !padding {
					count[p]++
				}
			}
			if got := r.Delivered(r.Steps()); policy == sampling.Pad && got != 10 || policy == sampling.Drop && got != 9 {
				t.Error(policy, got)
			}
		}
		if want := map[sampling.Policy]int{sampling.Pad: 10, sampling.Drop: 9}[policy]; len(count) != want {
			t.Error(policy, count)
		}
	}
	if _, err := sampling.NewRank(sampling.Exact, sampling.Window{Start: 100, Len: 10}, 0, 3, 0); err == nil {
		t.Error("10 positions for 3 ranks")
	}
}

func saved() *sampling.Position {
	epoch := uint64(10)
	digest := "5c85955f709283ecce2b74f1b1552918819f390911816e7bb466805a38ab87f3"
	return &sampling.Position{
		Mode: sampling.Weighted, Seed: math.MaxUint64, Stream: 3, Rows: 7, WindowStart: 20, WindowLen: 10, Delivered: 4, Next: 30,
		EpochLen: &epoch, Caches: digest, CacheHeads: []string{"00000000"}, TableRows: digest, TableWeights: digest,
	}
}

func TestSavedPositionsComeBack(t *testing.T) {
	want := saved()
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := sampling.ParsePosition(data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatal(got, err)
	}
	if err := got.Match(want); err != nil {
		t.Error(err)
	}
	other := saved()
	other.Seed = 1
	var refused *sampling.PositionError
	if err := got.Match(other); !errors.As(err, &refused) || refused.Member != "seed" {
		t.Error(err)
	}
}

func TestSavedPositionsWithUnknownMembersAreRefused(t *testing.T) {
	data, err := json.Marshal(saved())
	if err != nil {
		t.Fatal(err)
	}
	data = append([]byte(`{"rank":0,`), data[1:]...)
	_, err = sampling.ParsePosition(data)
	var refused *sampling.PositionError
	if !errors.As(err, &refused) || refused.Member != "rank" {
		t.Error(err)
	}
}

func FuzzPosition(f *testing.F) {
	data, err := json.Marshal(saved())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"format":"dataset_rt.position","table":null,"cache_heads":[null]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := sampling.ParsePosition(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := sampling.ParsePosition(again); err != nil || !reflect.DeepEqual(p, q) {
			t.Error(q, err)
		}
	})
}
