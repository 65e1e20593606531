package main

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

// forLater begins the reason of a skip of a test that is left to another run. exttest writes it.
const forLater = "left to the run without the race detector"

// left are tests that one run left to another: a line each of the package and, after a space, the test.
type left []key

// readLeft reads what leave has written. A file that is not there names none.
func readLeft(path string) (left, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out left
	for line := range strings.Lines(string(text)) {
		pkg, test, _ := strings.Cut(strings.TrimSpace(line), " ")
		out = append(out, key{pkg, test})
	}
	return out, nil
}

// split returns an expression for -run, with an alternative for each test, and the packages.
func (l left) split() (expression string, pkgs []string) {
	var names []string
	for _, k := range l {
		var path []string
		for part := range strings.SplitSeq(k.test, "/") {
			path = append(path, "^"+regexp.QuoteMeta(part)+"$")
		}
		names, pkgs = append(names, strings.Join(path, "/")), append(pkgs, k.pkg)
	}
	slices.Sort(names)
	slices.Sort(pkgs)
	return strings.Join(slices.Compact(names), "|"), slices.Compact(pkgs)
}

// leave writes the skipped tests that are left to another run to path.
func (r *report) leave(path string) error {
	var out strings.Builder
	for _, k := range r.skipped {
		if r.forLater(k) {
			out.WriteString(k.String() + "\n")
		}
	}
	return os.WriteFile(path, []byte(out.String()), 0o600)
}

func (r *report) forLater(k key) bool { return strings.Contains(r.reason(k), forLater) }
