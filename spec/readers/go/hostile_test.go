package datasetrt_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"datasetrt"
	"datasetrt/internal/cachetest"
)

var cacheFiles = []string{"manifest.json", "metadata.arrow", "index.bin", "shards/000000.bin", "shards/000001.bin"}

// use opens a cache and reads whatever it hands out; errors are fine, panics are not.
func use(dir string) error {
	c, err := datasetrt.Open(dir)
	if err != nil {
		return err
	}
	defer c.Close()
	var s datasetrt.Sample
	for i := range min(c.Len(), 100) {
		if e := c.Read(i, &s); e != nil {
			err = e
		}
	}
	return err
}

// everyByte makes TestChangedBytesAreNoticed exhaustive, which takes minutes: go test -every-byte.
var everyByte = flag.Bool("every-byte", false, "change every byte of the test cache, not some")

// TestChangedBytesAreNoticed flips a bit of bytes of each file: verification must refuse with a code, use must not panic.
func TestChangedBytesAreNoticed(t *testing.T) {
	stride := 11 // no divisor of the sizes of anything in the files
	if *everyByte {
		stride = 1
	}
	dir := written(t, rowsOf(6, 10), 3)
	for _, name := range cacheFiles {
		path := filepath.Join(dir, name)
		sound, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(sound); i += stride {
			data := append([]byte{}, sound...)
			data[i] ^= 1 << (i % 8)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := datasetrt.Verify(dir); datasetrt.CodeOf(err) == "" {
				t.Errorf("%s, byte %d: %v", name, i, err)
			}
			if err := use(dir); err != nil && datasetrt.CodeOf(err) == "" {
				t.Errorf("%s, byte %d, use: %v", name, i, err)
			}
		}
		if err := os.WriteFile(path, sound, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := datasetrt.Verify(dir); err != nil {
		t.Error(err)
	}
}

// resealed writes metadata that was changed on purpose with sums that fit: the structural checks are alone then.
func resealed(t testing.TB, dir string, change func(metadata []byte) []byte) {
	t.Helper()
	rows := rowsOf(6, 10)
	if err := cachetest.WriteChanged(dir, rows, 3, change); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedMetadataWithSoundSumsDoesNotPanic(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	refused := 0
	for range 200 {
		resealed(t, dir, func(m []byte) []byte {
			for range 1 + random.IntN(3) {
				switch at := random.IntN(len(m)); random.IntN(4) {
				case 0:
					m[at] ^= 1 << random.IntN(8)
				case 1:
					m[at] = 0xFF
				case 2:
					m[at] = 0
				default:
					copy(m[at:], []byte{0xFF, 0xFF, 0xFF, 0x7F}[:min(4, len(m)-at)])
				}
			}
			return m
		})
		for _, err := range []error{use(dir), datasetrt.Verify(dir)} {
			if err != nil && datasetrt.CodeOf(err) == "" {
				t.Fatal(err)
			}
			if err != nil {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

func TestManifestsThatJSONLibrariesAcceptTooEasily(t *testing.T) {
	dir := written(t, rowsOf(3, 1), 3)
	data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sound map[string]any
	if err := json.Unmarshal(data, &sound); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"format", "version", "sha256"} {
		delete(sound, name)
	}
	if _, err := datasetrt.ParseManifest(cachetest.Manifest(sound)); err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(m map[string]any){
		func(m map[string]any) { m["Writer"] = m["writer"]; delete(m, "writer") },
		func(m map[string]any) { m["writer"] = nil },
		func(m map[string]any) { m["samples"] = json.Number("3.0") },
		func(m map[string]any) { m["samples"] = "3" },
		func(m map[string]any) { m["fields"] = nil },
		func(m map[string]any) { m["user"] = nil },
		func(m map[string]any) { m["optional"] = []any{nil} },
		func(m map[string]any) { m["codec"] = nil },
		func(m map[string]any) { m["writer"] = json.RawMessage(`"\ud800\u0041"`) },
		func(m map[string]any) { m["x"] = json.RawMessage(`{"\udc00":1}`) },
	} {
		m := map[string]any{}
		for k, v := range sound {
			m[k] = v
		}
		change(m)
		if _, err := datasetrt.ParseManifest(cachetest.Manifest(m)); datasetrt.CodeOf(err) != datasetrt.ManifestInvalid {
			t.Errorf("change %d: %v", i, err)
		}
	}
	sound["writer"] = json.RawMessage(`"\\ud800 \ud83d\ude00"`)
	m, err := datasetrt.ParseManifest(cachetest.Manifest(sound))
	if err != nil || m.Writer != `\ud800 😀` {
		t.Error(m, err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`"required":[],"optional":[]`))
	f.Add([]byte(`"required":["a"],"optional":[],"samples":1`))
	f.Add([]byte(`"shards":[{"name":"000000","size":200}]`))
	f.Fuzz(func(t *testing.T, members []byte) {
		var m map[string]any
		if json.Unmarshal(fmt.Appendf(nil, "{%s}", members), &m) != nil {
			return
		}
		if _, err := datasetrt.ParseManifest(cachetest.Manifest(m)); err != nil && datasetrt.CodeOf(err) == "" {
			t.Error(err)
		}
	})
}

func FuzzMetadata(f *testing.F) {
	sound := cachetest.Metadata(rowsOf(6, 10))
	f.Add(sound)
	for _, at := range []int{16, 40, 100, len(sound) - 20, len(sound) - 60} {
		changed := append([]byte{}, sound...)
		changed[at] ^= 0x40
		f.Add(changed)
	}
	f.Fuzz(func(t *testing.T, metadata []byte) {
		dir := t.TempDir()
		resealed(t, dir, func([]byte) []byte { return metadata })
		for _, err := range []error{use(dir), datasetrt.Verify(dir)} {
			if err != nil && datasetrt.CodeOf(err) == "" {
				t.Error(err)
			}
		}
	})
}

func FuzzLZ4(f *testing.F) {
	f.Add([]byte{0x00}, uint16(0))
	f.Add([]byte{0x3F, 'a', 'b', 'c', 3, 0, 0x36, 0x50, 'b', 'c', 'a', 'b', 'c'}, uint16(81))
	f.Add([]byte{0xFF, 0xFF, 0xFF}, uint16(600))
	f.Fuzz(func(t *testing.T, block []byte, n uint16) {
		dst := make([]byte, int(n)+1)
		dst[n] = 0x5A
		_ = datasetrt.DecodeLZ4(dst[:n:n], block)
		if dst[n] != 0x5A {
			t.Error("wrote behind the output")
		}
	})
}
