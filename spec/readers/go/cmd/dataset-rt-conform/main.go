// Command dataset-rt-conform shows what the reader makes of caches and vectors. Run it without arguments for its usage.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"datasetrt"
	"datasetrt/internal/vectors"
)

const usage = `usage:
  dataset-rt-conform CACHE [--all-rows]        verify a cache and print its content
  dataset-rt-conform --batch [--all-rows]      the same for each folder on standard input, a line each
  dataset-rt-conform CACHE --order ORDER       print the rows of a window; ORDER is a JSON object
  dataset-rt-conform --vectors FOLDER          run all vectors
  dataset-rt-conform --bench CACHE [--epochs N]
                                               iterate over a cache and print records a second
`

// Exit codes.
const (
	exitRefused = 1
	exitUsage   = 2
	exitUnread  = 3 // nothing is known about the cache
)

var errUsage = errors.New("wrong arguments")

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, in io.Reader, out, problems io.Writer) int {
	code, err := command(args, in, out, problems)
	if err != nil {
		fmt.Fprintln(problems, "dataset-rt-conform:", err)
		if errors.Is(err, errUsage) {
			fmt.Fprint(problems, usage)
		}
	}
	return code
}

func command(args []string, in io.Reader, out, problems io.Writer) (int, error) {
	is := func(i int, word string) bool { return i < len(args) && args[i] == word }
	switch {
	case len(args) == 1 && is(0, "--batch"):
		return batch(false, in, out)
	case len(args) == 2 && is(0, "--batch") && is(1, "--all-rows"):
		return batch(true, in, out)
	case len(args) == 2 && is(0, "--vectors"):
		return runVectors(args[1], out)
	case len(args) == 2 && is(0, "--bench"):
		return bench(args[1], 1, out)
	case len(args) == 4 && is(0, "--bench") && is(2, "--epochs"):
		epochs, err := strconv.Atoi(args[3])
		if err != nil || epochs < 1 {
			return exitUsage, fmt.Errorf("%w: --epochs %q", errUsage, args[3])
		}
		return bench(args[1], epochs, out)
	case len(args) == 3 && is(1, "--order"):
		return order(args[0], args[2], out, problems)
	case len(args) == 1 && args[0] != "" && args[0][0] != '-':
		return show(args[0], false, out, problems)
	case len(args) == 2 && is(1, "--all-rows"):
		return show(args[0], true, out, problems)
	}
	return exitUsage, errUsage
}

// show prints the document of a cache.
func show(dir string, allRows bool, out, problems io.Writer) (int, error) {
	document, err := vectors.Document(dir, allRows)
	if err != nil {
		return refuse(err, out, problems)
	}
	return 0, write(out, document)
}

func refuse(err error, out, problems io.Writer) (int, error) {
	if datasetrt.CodeOf(err) == "" {
		return exitUnread, err
	}
	fmt.Fprintln(problems, err)
	return exitRefused, write(out, vectors.Refused(err))
}

func write(out io.Writer, document any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	_, err = out.Write(append(data, '\n'))
	return err
}

func batch(allRows bool, in io.Reader, out io.Writer) (int, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		if code, err := show(lines.Text(), allRows, out, io.Discard); err != nil {
			return code, err
		}
	}
	return 0, lines.Err()
}

func runVectors(folder string, out io.Writer) (int, error) {
	counts, err := vectors.Run(folder, out)
	if err != nil {
		return exitUsage, err
	}
	fmt.Fprintln(out, counts)
	if counts.Failed > 0 {
		return exitRefused, nil
	}
	return 0, nil
}
