package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"datasetrt/internal/cachetest"
)

func cache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	rows := make([]cachetest.Row, 40)
	for i := range rows {
		rows[i].Payload = []byte{byte(i)}
	}
	if err := cachetest.Write(dir, rows, 20); err != nil {
		t.Fatal(err)
	}
	return dir
}

func conform(t *testing.T, input string, args ...string) (code int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(args, strings.NewReader(input), &stdout, &stderr)
	return code, stdout.String()
}

func shownRows(t *testing.T, out string) int {
	t.Helper()
	var document struct {
		Outcome string
		Rows    []any
	}
	if err := json.Unmarshal([]byte(out), &document); err != nil || document.Outcome != "valid" {
		t.Fatal(err, out)
	}
	return len(document.Rows)
}

func TestCommand(t *testing.T) {
	dir := cache(t)
	if code, out := conform(t, "", dir); code != 0 || shownRows(t, out) != 24 {
		t.Error(code, out)
	}
	if code, out := conform(t, "", dir, "--all-rows"); code != 0 || shownRows(t, out) != 40 {
		t.Error(code, out)
	}
	missing := `{"code":"file_missing","outcome":"invalid"}` + "\n"
	if code, out := conform(t, "", t.TempDir()); code != 1 || out != missing {
		t.Error(code, out)
	}
	code, out := conform(t, dir+"\n"+t.TempDir()+"\n", "--batch")
	if lines := strings.SplitAfter(out, "\n"); code != 0 || len(lines) != 3 || shownRows(t, lines[0]) != 24 || lines[1] != missing {
		t.Error(code, out)
	}
	order := `{"mode":"ordered","seed":"1","stream":"0","start":"39","count":"3"}`
	if code, out := conform(t, "", dir, "--order", order); code != 0 || out != `{"type":"uint64","values":["39","0","1"]}`+"\n" {
		t.Error(code, out)
	}
	if code, out := conform(t, "", "--bench", dir, "--epochs", "2"); code != 0 || strings.Count(out, "40 records") != 2 {
		t.Error(code, out)
	}
	refused := `{"code":"file_missing","outcome":"invalid"}` + "\n"
	if code, out := conform(t, "", t.TempDir(), "--order", order); code != 1 || out != refused {
		t.Error(code, out)
	}
	if code, out := conform(t, "\n"+dir+"\n", "--batch", "--all-rows"); code != 0 || shownRows(t, out) != 40 {
		t.Error(code, out)
	}
	for _, args := range [][]string{{}, {"--what"}, {dir, "--order", "{}"}, {dir, "--all-rows", "x"}, {"--bench", dir, "--epochs", "0"}} {
		if code, _ := conform(t, "", args...); code != 2 {
			t.Error(args, code)
		}
	}
}
