package datasetrt_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"datasetrt/internal/vectors"
)

// vectorsFolder is the folder of the vectors: $DATASETRT_VECTORS, or where it lies beside this module.
func vectorsFolder(t testing.TB) string {
	folder := os.Getenv("DATASETRT_VECTORS")
	if folder != "" {
		return folder
	}
	folder = filepath.Join("..", "..", "vectors")
	if _, err := os.Stat(filepath.Join(folder, "index.json")); errors.Is(err, fs.ErrNotExist) {
		t.Skip("no vectors; set DATASETRT_VECTORS")
	}
	return folder
}

type logged struct{ t *testing.T }

func (l logged) Write(line []byte) (int, error) {
	l.t.Errorf("%s", line)
	return len(line), nil
}

func TestVectors(t *testing.T) {
	counts, err := vectors.Run(vectorsFolder(t), logged{t})
	if err != nil {
		t.Fatal(err)
	}
	if counts.Failed != 0 || counts.Units == 0 || counts.Valid == 0 || counts.Invalid == 0 {
		t.Error(counts)
	}
	t.Log(counts)
}
