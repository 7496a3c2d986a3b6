package vectors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"

	"datasetrt"
)

type listing struct {
	Format  string
	Version int
	Vectors []vector
}

type vector struct {
	ID       string
	Kind     string
	Path     string
	Expected string
	Checks   []string
}

// Counts says how many vectors of each kind passed, and how many failed at all.
type Counts struct{ Units, Cases, Valid, Invalid, Failed int }

// String gives the counts in one line.
func (c Counts) String() string {
	return fmt.Sprintf("%d unit vectors (%d cases), %d valid, %d invalid passed; %d failed", c.Units, c.Cases, c.Valid, c.Invalid, c.Failed)
}

// Run runs every vector of a folder and writes a line for each that fails. An error means that they could not be run.
func Run(folder string, out io.Writer) (Counts, error) {
	var counts Counts
	data, err := os.ReadFile(filepath.Join(folder, "index.json"))
	if err != nil {
		return counts, err
	}
	var list listing
	if err := json.Unmarshal(data, &list); err != nil {
		return counts, err
	}
	if list.Format != "dataset_rt.vectors" || list.Version != 1 {
		return counts, fmt.Errorf("%s version %d is not known here", list.Format, list.Version)
	}
	unlisted, err := present(folder)
	if err != nil {
		return counts, err
	}
	for _, v := range list.Vectors {
		delete(unlisted, path.Clean(v.Path))
		if err := runOne(folder, v, &counts); err != nil {
			counts.Failed++
			fmt.Fprintf(out, "%s: %v\n", v.ID, err)
		}
	}
	for p := range unlisted {
		counts.Failed++
		fmt.Fprintf(out, "%s: is not listed\n", p)
	}
	return counts, nil
}

// present gives the paths of all vectors that lie in the folder.
func present(folder string) (map[string]bool, error) {
	found := map[string]bool{}
	for _, pattern := range []string{"v1/units/*", "v1/valid/*", "v1/invalid/*"} {
		paths, err := fs.Glob(os.DirFS(folder), pattern)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			found[p] = true
		}
	}
	return found, nil
}

func runOne(folder string, v vector, counts *Counts) error {
	full := filepath.Join(folder, filepath.FromSlash(v.Path))
	var err error
	switch v.Kind {
	case "unit":
		var cases int
		if cases, err = runUnit(folder, full); err == nil {
			counts.Units++
			counts.Cases += cases
		}
	case "valid":
		if err = runValid(full); err == nil {
			counts.Valid++
		}
	case "invalid":
		if err = runInvalid(full, v); err == nil {
			counts.Invalid++
		}
	default:
		err = fmt.Errorf("kind %q is not known here", v.Kind)
	}
	return err
}

func readJSON(name string, into any) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func runUnit(folder, full string) (int, error) {
	var file struct {
		Cases []struct {
			In  map[string]json.RawMessage
			Out any
		}
	}
	if err := readJSON(full, &file); err != nil {
		return 0, err
	}
	name := strings.TrimSuffix(filepath.Base(full), ".json")
	compute := formatUnits[name]
	if compute == nil {
		compute = samplingUnits[name]
	}
	if compute == nil {
		return 0, errors.New("this unit is not known here")
	}
	if len(file.Cases) == 0 {
		return 0, errors.New("no cases")
	}
	for i, c := range file.Cases {
		in := &input{members: c.In}
		got := compute(in, folder)
		if in.err != nil {
			return 0, fmt.Errorf("case %d: %w", i, in.err)
		}
		if !reflect.DeepEqual(got, c.Out) {
			return 0, fmt.Errorf("case %d: got %.300s, expected %.300s", i, asJSON(got), asJSON(c.Out))
		}
	}
	return len(file.Cases), nil
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func runValid(full string) error {
	var want map[string]any
	if err := readJSON(filepath.Join(full, "expected.json"), &want); err != nil {
		return err
	}
	got, err := Document(filepath.Join(full, "cache"), false)
	if err != nil {
		return err
	}
	for name := range want {
		if !reflect.DeepEqual(got[name], want[name]) {
			return fmt.Errorf("%s: got %.300s, expected %.300s", name, asJSON(got[name]), asJSON(want[name]))
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d members, expected %d", len(got), len(want))
	}
	return nil
}

func runInvalid(full string, v vector) error {
	var want struct{ Code, Check string }
	if err := readJSON(filepath.Join(full, "expected.json"), &want); err != nil {
		return err
	}
	err := datasetrt.Verify(filepath.Join(full, "cache"))
	var defect *datasetrt.Error
	if !errors.As(err, &defect) {
		return fmt.Errorf("got %v, expected %s (%s)", err, want.Code, want.Check)
	}
	if string(defect.Code) != want.Code || want.Code != v.Expected {
		return fmt.Errorf("got %v, expected %s (%s)", err, want.Code, want.Check)
	}
	if want.Check != "" && defect.Check != want.Check {
		return fmt.Errorf("found by %s (%v), expected %s", defect.Check, err, want.Check)
	}
	return nil
}
