//go:build !unix

package datasetrt

import (
	"io"
	"os"
)

// mapFile reads the file: size is that of the file itself, so it is no unchecked length.
func mapFile(f *os.File, size int) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(f, data)
	return data, err
}

func unmapFile([]byte) error { return nil }
