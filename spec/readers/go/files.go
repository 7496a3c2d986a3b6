package datasetrt

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
)

// folder is the directory of a cache. os.Root refuses symbolic links that lead out of it.
type folder struct{ root *os.Root }

func openFolder(dir string) (folder, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrPermission) {
		return folder{}, err
	}
	if err != nil {
		return folder{}, &Error{Code: FileMissing, Check: "M1", File: manifestName, Detail: "the cache's folder can't be opened", Err: err}
	}
	return folder{root}, nil
}

// open opens a regular file. Its kind is looked at before, since opening a pipe would wait for a writer.
func (d folder) open(name, check string) (*os.File, int64, error) {
	missing := func(detail string, err error) error {
		if errors.Is(err, fs.ErrPermission) {
			return err // which says nothing about the cache
		}
		return &Error{Code: FileMissing, Check: check, File: name, Detail: detail, Err: err}
	}
	info, err := d.root.Stat(name)
	if err != nil {
		return nil, 0, missing("the file isn't there", err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, missing("not a regular file", nil)
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, 0, missing("the file can't be opened", err)
	}
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, 0, missing("not a regular file", errors.Join(err, f.Close()))
	}
	return f, info.Size(), nil
}

// stat makes checks F1 and F2.
func (d folder) stat(name string, size uint64) error {
	f, got, err := d.open(name, "F1")
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return checkSize(name, got, size)
}

func checkSize(name string, got int64, want uint64) error {
	if uint64(got) != want {
		return fail(FileSize, "F2", name, "", "the file has %d bytes, the manifest says %d", got, want)
	}
	return nil
}

// mapped makes checks F1 and F2 and gives the file's bytes.
func (d folder) mapped(name string, size uint64) ([]byte, error) {
	f, got, err := d.open(name, "F1")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := checkSize(name, got, size); err != nil {
		return nil, err
	}
	switch {
	case size == 0:
		return nil, nil
	case size > math.MaxInt:
		return nil, errors.New("datasetrt: " + name + " is too large for this machine's addresses")
	}
	data, err := mapFile(f, int(size))
	if err != nil {
		return nil, &os.PathError{Op: "map", Path: name, Err: err}
	}
	return data, nil
}

// read gives all bytes of the manifest, whose size nothing vouches for: memory grows with what is there.
func (d folder) read(name, check string) ([]byte, error) {
	f, _, err := d.open(name, check)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return data, nil
}
