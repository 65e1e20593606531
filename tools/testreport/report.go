package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	ImportPath  string // of what is built
	FailedBuild string // ImportPath of what did not compile
}

type key struct{ pkg, test string }

func (k key) String() string { return strings.TrimSpace(k.pkg + " " + k.test) }

type report struct {
	out     io.Writer
	output  map[key][]string
	running map[key]bool
	passed  int
	failed  []key
	skipped []key
	broken  []key // packages that failed outside any test
	moody   []key // tests that failed and then passed alone
	later   bool  // another run takes what is left to it
	missing left  // tests that were to run and have not ended yet
}

// retold is how many lines of a failure's output are told once more at the end: enough for its messages, and few enough
// that they are at the end of a log, which is all that some places show.
const retold = 60

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[key][]string{}, running: map[key]bool{}}
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
				r.printf("%s", line) // an error of the go command itself
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
	if e.Action != "output" {
		delete(r.running, k)
	}
	if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
		r.missing = slices.DeleteFunc(r.missing, func(m key) bool { return m == k })
	}
	switch e.Action {
	case "run", "cont", "pause":
		r.running[k] = true
	case "output":
		r.output[k] = append(r.output[k], e.Output)
		if e.Test == "" && closing(e.Output) {
			r.printf("%s", e.Output)
		}
	case "build-output":
		of := key{pkg: e.ImportPath}
		r.output[of] = append(r.output[of], e.Output)
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
		r.output[k] = append(r.output[k], r.output[key{pkg: e.FailedBuild}]...)
		r.fail(k)
	}
}

// closing reports whether this is go test's last line for a package.
func closing(line string) bool {
	for _, prefix := range []string{"ok  \t", "FAIL\t", "---\t"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// forget drops the output of a passed test; it may be large.
func (r *report) forget(k key) {
	if k.test != "" {
		delete(r.output, k)
	}
}

func (r *report) fail(k key) {
	if k.test != "" {
		r.failed = append(r.failed, k)
		r.printf("%s", strings.Join(r.output[k], ""))
		return
	}
	// The tests that a panic or the time limit cut off have no end; what it said is in one's output.
	cut := false
	for running := range r.running {
		if running.pkg == k.pkg {
			cut = true
			if slices.ContainsFunc(r.output[running], panics) {
				r.fail(running)
			}
		}
	}
	if cut || !slices.ContainsFunc(r.failed, func(f key) bool { return f.pkg == k.pkg }) {
		r.broken = append(r.broken, k)
		r.printf("%s", strings.Join(r.output[k], ""))
	}
}

func panics(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "SIGQUIT: ")
}

// few returns, by package, the tests that failed without a subtest's name if they are at most limit and may have failed
// because of what ran beside them. Otherwise it returns nothing.
func (r *report) few(limit int) map[string][]string {
	tests, n := map[string][]string{}, 0
	for _, k := range r.failed {
		if slices.ContainsFunc(r.output[k], func(line string) bool { return panics(line) || strings.Contains(line, "WARNING: DATA RACE") }) {
			return nil
		}
		top, _, _ := strings.Cut(k.test, "/")
		if !slices.Contains(tests[k.pkg], top) {
			tests[k.pkg] = append(tests[k.pkg], top)
			n++
		}
	}
	if n > limit || len(r.broken) > 0 {
		return nil
	}
	return tests
}

// flaky takes the failures of a package back, whose tests passed in a second report.
func (r *report) flaky(pkg string, second *report) {
	if second.passed == 0 {
		return
	}
	r.passed += second.passed
	r.failed = slices.DeleteFunc(r.failed, func(k key) bool {
		if k.pkg != pkg {
			return false
		}
		r.moody = append(r.moody, k)
		return true
	})
}

// close prints the end of the report and returns whether all is well. It appends what was not well to again, too.
func (r *report) close(noSkip bool, fine agreed, again io.Writer) (ok bool) {
	// In one piece: another report may be written at the same time.
	to := r.out
	var end, bad strings.Builder
	defer func() { _, _ = io.WriteString(to, end.String()) }()
	r.out = &end
	forbidden := r.skips(fine)
	if noSkip {
		bad.WriteString(forbidden)
	}
	r.out = io.MultiWriter(&end, &bad)
	r.failures()
	for _, k := range r.moody {
		r.printf("FLAKY %s: it failed, and passed when run alone; mend it\n", k)
	}
	for _, k := range r.missing {
		r.printf("NOT RUN %s: it was left to this run\n", k)
	}
	r.printf("\n%d passed, %d failed, %d skipped\n", r.passed, len(r.failed)+len(r.broken), len(r.skipped))
	switch {
	case len(r.failed)+len(r.broken)+len(r.missing) > 0:
	case noSkip && forbidden != "":
		r.printf("Skips are forbidden here: provide what they need, or run without SANDBOXER_NO_SKIP=1.\n")
	case r.passed == 0:
		r.printf("No test ran.\n")
	case len(r.moody) == 0:
		return true
	default:
		ok = true
	}
	_, _ = io.WriteString(again, bad.String())
	return ok
}

// failures tells the important part of each failure's output, and then all their names. A test that failed by its
// subtests alone said nothing.
func (r *report) failures() {
	bad := slices.Concat(r.failed, r.broken)
	for _, k := range slices.Concat(r.moody, bad) {
		if said := important(r.output[k]); len(said) > 0 {
			r.printf("\n--- once more: %s\n%s", k, strings.Join(said, ""))
		}
	}
	for _, k := range bad {
		r.printf("FAILED %s\n", k)
	}
}

// important returns the lines from a panic on, which names its cause before all goroutines, or else the last ones.
func important(output []string) []string {
	said := slices.DeleteFunc(slices.Clone(output), func(line string) bool {
		return aboutRunning(line) || strings.TrimSpace(line) == ""
	})
	if i := slices.IndexFunc(said, panics); i >= 0 {
		return said[i:min(len(said), i+retold)]
	}
	return said[max(0, len(said)-retold):]
}

// aboutRunning reports whether a line says only that a test runs, waits or failed.
func aboutRunning(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ")
}

// skips lists the skipped tests and returns the part about those not agreed. It counts the skips of -short by their
// reason.
func (r *report) skips(fine agreed) (forbidden string) {
	var open, known []string
	later := 0
	short := map[string]int{}
	for _, k := range r.skipped {
		reason := r.reason(k)
		line := fmt.Sprintf("  %s %s: %s\n", k.pkg, k.test, reason)
		switch _, left, isShort := strings.Cut(reason, "-short: "); {
		case isShort:
			short[left]++
		case r.later && r.forLater(k):
			later++
		case fine.has(k):
			known = append(known, line)
		default:
			open = append(open, line)
		}
	}
	if later > 0 {
		r.printf("\n%d tests are left to the run without the race detector.\n", later)
	}
	if len(known) > 0 {
		r.printf("\nSkipped, as agreed (%d):\n%s", len(known), strings.Join(known, ""))
	}
	if len(short) > 0 {
		forbidden += "\nLeft out by -short, so not proved here:\n"
		for _, left := range slices.Sorted(maps.Keys(short)) {
			forbidden += fmt.Sprintf("  %3d: %s\n", short[left], left)
		}
	}
	if len(open) > 0 {
		forbidden += fmt.Sprintf("\nSKIPPED, so not proved here (%d):\n%s", len(open), strings.Join(open, ""))
	}
	r.printf("%s", forbidden)
	return forbidden
}

// reason returns the test's message for its skip.
func (r *report) reason(k key) string {
	var said []string
	for _, line := range r.output[k] {
		if line = strings.TrimSpace(line); line != "" && !aboutRunning(line) {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

func (r *report) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format, args...) // no way is left to report it
}
