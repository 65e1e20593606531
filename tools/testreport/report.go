package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

type key struct{ pkg, test string }

type report struct {
	out     io.Writer
	output  map[key][]string
	passed  int
	failed  []key
	skipped []key
	broken  []string // packages that failed outside any test
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[key][]string{}}
}

func (r *report) read(events io.Reader) error {
	in := bufio.NewReader(events)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
				r.take(e)
			} else {
				r.printf("%s", line) // a complaint of the go command itself
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "output":
		r.output[k] = append(r.output[k], e.Output)
		if e.Test == "" && closing(e.Output) {
			r.printf("%s", e.Output)
		}
	case "build-output":
		r.printf("%s", e.Output)
	case "pass":
		if e.Test != "" {
			r.passed++
		}
		r.forget(k)
	case "skip":
		if e.Test != "" {
			r.skipped = append(r.skipped, k)
		}
	case "fail":
		r.fail(k)
	}
}

// closing reports the last line go test prints for a package.
func closing(line string) bool {
	for _, prefix := range []string{"ok  \t", "FAIL\t", "---\t"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// forget drops the output of a test that passed; it may be large.
func (r *report) forget(k key) {
	if k.test != "" {
		delete(r.output, k)
	}
}

func (r *report) fail(k key) {
	if k.test == "" {
		if !slices.ContainsFunc(r.failed, func(f key) bool { return f.pkg == k.pkg }) {
			r.broken = append(r.broken, k.pkg)
			r.printf("%s", strings.Join(r.output[k], ""))
		}
		return
	}
	r.failed = append(r.failed, k)
	r.printf("%s", strings.Join(r.output[k], ""))
}

// close prints the end of the report and tells whether all is well.
func (r *report) close(noSkip bool, fine agreed) bool {
	forbidden := r.skips(fine)
	for _, k := range r.failed {
		r.printf("FAILED %s %s\n", k.pkg, k.test)
	}
	for _, pkg := range r.broken {
		r.printf("FAILED %s\n", pkg)
	}
	r.printf("\n%d passed, %d failed, %d skipped\n", r.passed, len(r.failed)+len(r.broken), len(r.skipped))
	switch {
	case len(r.failed)+len(r.broken) > 0:
		return false
	case noSkip && forbidden > 0:
		r.printf("Skips are forbidden here: provide what they need, or run without SANDBOXER_NO_SKIP=1.\n")
		return false
	case r.passed == 0:
		r.printf("No test ran.\n")
		return false
	}
	return true
}

// skips lists what was skipped and counts what is not agreed.
func (r *report) skips(fine agreed) int {
	var open, known []string
	for _, k := range r.skipped {
		line := fmt.Sprintf("  %s %s: %s\n", k.pkg, k.test, r.reason(k))
		if fine.has(k) {
			known = append(known, line)
		} else {
			open = append(open, line)
		}
	}
	if len(known) > 0 {
		r.printf("\nSkipped, as agreed (%d):\n%s", len(known), strings.Join(known, ""))
	}
	if len(open) > 0 {
		r.printf("\nSKIPPED, so not proved here (%d):\n%s", len(open), strings.Join(open, ""))
	}
	return len(open)
}

// reason is what the test said when it skipped itself.
func (r *report) reason(k key) string {
	var said []string
	for _, line := range r.output[k] {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

func (r *report) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format, args...) // nobody is left to tell
}
