package datasetrt_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"datasetrt"
	"datasetrt/internal/cachetest"
	"datasetrt/sampling"
)

func written(t testing.TB, rows []cachetest.Row, perShard int) string {
	t.Helper()
	dir := t.TempDir()
	if err := cachetest.Write(dir, rows, perShard); err != nil {
		t.Fatal(err)
	}
	return dir
}

func opened(t testing.TB, dir string) *datasetrt.Cache {
	t.Helper()
	c, err := datasetrt.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func check(t *testing.T, s *datasetrt.Sample, i uint64, want cachetest.Row) {
	t.Helper()
	if s.Index != i || !bytes.Equal(s.Payload, want.Payload) || len(s.Values) != 4 {
		t.Fatalf("sample %d: index %d, %d bytes, %d values", i, s.Index, len(s.Payload), len(s.Values))
	}
	v := s.Values
	if v[0].Int64() != want.Label || v[1].Float64() != want.Score || v[3].Bool() != want.Flag || v[2].IsNull() != (want.Name == nil) {
		t.Fatalf("sample %d: %v", i, v)
	}
	if want.Name != nil && v[2].Text() != *want.Name {
		t.Fatalf("sample %d: %q", i, v[2].Text())
	}
}

func TestEverySampleIsReadInOrder(t *testing.T) {
	// More rows than a batch and a block of the index hold.
	rows := rowsOf(70000, 3)
	c := opened(t, written(t, rows, 9999))
	next := uint64(0)
	for s, err := range c.All() {
		if err != nil {
			t.Fatal(err)
		}
		check(t, s, next, rows[next])
		next++
	}
	if next != uint64(len(rows)) {
		t.Fatal(next)
	}
}

func TestSamplesAreReadInAnyOrderByManyGoroutines(t *testing.T) {
	rows := rowsOf(500, 40)
	c := opened(t, written(t, rows, 7))
	var group sync.WaitGroup
	for g := range uint64(8) {
		group.Add(1)
		go func() {
			defer group.Done()
			stream, err := sampling.NewStream(sampling.PermutationMode, g, 0, c.Len())
			if err != nil {
				t.Error(err)
				return
			}
			seen := 0
			for s, err := range c.Select(stream.Rows(sampling.Window{Len: c.Len()})) {
				if err != nil {
					t.Error(err)
					return
				}
				check(t, s, s.Index, rows[s.Index])
				seen++
			}
			if seen != len(rows) {
				t.Errorf("%d samples", seen)
			}
		}()
	}
	group.Wait()
}

func TestWholeVerificationAcceptsWhatIsSound(t *testing.T) {
	if err := datasetrt.Verify(written(t, rowsOf(300, 100), 64)); err != nil {
		t.Fatal(err)
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	c := opened(t, written(t, rowsOf(100, 64), 50))
	var s datasetrt.Sample
	read := func() {
		for i := range c.Len() {
			if err := c.Read(i, &s); err != nil {
				t.Fatal(err)
			}
		}
	}
	read()
	if n := testing.AllocsPerRun(5, read); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestErrorsSayCodeFileAndPlace(t *testing.T) {
	dir := written(t, rowsOf(10, 64), 5)
	name := filepath.Join(dir, "shards", "000001.bin")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[64+64] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c := opened(t, dir)
	if _, err := c.Sample(5); err != nil {
		t.Fatal("a sample that isn't damaged:", err)
	}
	_, err = c.Sample(6)
	var defect *datasetrt.Error
	if !errors.As(err, &defect) {
		t.Fatal(err)
	}
	want := datasetrt.Error{Code: datasetrt.RecordDamaged, Check: "S14", File: "shards/000001.bin", Place: "sample 6", Detail: defect.Detail}
	if *defect != want {
		t.Errorf("%+v", defect)
	}
	if err := c.Row(6, &datasetrt.Sample{}); err != nil {
		t.Error("the metadata isn't damaged:", err)
	}
}

func TestSampleNumbersAndClosedCachesAreChecked(t *testing.T) {
	dir := written(t, rowsOf(3, 1), 3)
	c, err := datasetrt.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sample(3); !errors.Is(err, datasetrt.ErrRange) {
		t.Error(err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Sample(0); !errors.Is(err, datasetrt.ErrClosed) {
		t.Error(err)
	}
}

func TestMissingFiles(t *testing.T) {
	for _, name := range []string{"manifest.json", "metadata.arrow", "index.bin", "shards/000000.bin"} {
		dir := written(t, rowsOf(3, 1), 3)
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := datasetrt.Verify(dir); datasetrt.CodeOf(err) != datasetrt.FileMissing {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := datasetrt.Verify(dir); datasetrt.CodeOf(err) != datasetrt.FileMissing {
			t.Errorf("%s is a folder: %v", name, err)
		}
	}
	if _, err := datasetrt.Open(filepath.Join(t.TempDir(), "none")); datasetrt.CodeOf(err) != datasetrt.FileMissing {
		t.Error(err)
	}
}

func TestLinksOutOfTheCacheAreNotFollowed(t *testing.T) {
	dir := written(t, rowsOf(3, 1), 3)
	outside := filepath.Join(t.TempDir(), "index.bin")
	inside := filepath.Join(dir, "index.bin")
	if err := os.Rename(inside, outside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, inside); err != nil {
		t.Skip(err)
	}
	if _, err := datasetrt.Open(dir); datasetrt.CodeOf(err) != datasetrt.FileMissing {
		t.Error(err)
	}
}

func TestLZ4OverlappingCopies(t *testing.T) {
	for back := 1; back <= 20; back++ {
		literals := []byte("0123456789abcdefghij")[:back]
		var block []byte
		if back < 15 {
			block = append(block, byte(back<<4|15))
		} else {
			block = append(block, 0xFF, byte(back-15))
		}
		block = append(block, literals...)
		block = append(block, byte(back), 0, 255, 3, 0x10, '!') // match of 15 + 258 + 4 bytes, one literal
		want := slices.Clone(literals)
		for range 277 {
			want = append(want, want[len(want)-back])
		}
		want = append(want, '!')
		got := make([]byte, len(want))
		if err := datasetrt.DecodeLZ4(got, block); err != nil || !bytes.Equal(got, want) {
			t.Errorf("offset %d: %v, %q", back, err, got)
		}
	}
}
