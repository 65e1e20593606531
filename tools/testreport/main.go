// Command testreport runs `go test -json` with its arguments and prints what a person needs: go's closing line of
// every package, the whole output of failures, and at the end every skipped test with its reason, so no skip is
// silent, and the end of every failure's output once more.
//
//	testreport [-no-skip] [-agreed FILE] [-failures FILE] -- -race ./...
//
// It fails if a test failed, if nothing ran, and with -no-skip (or SANDBOXER_NO_SKIP=1 in the environment) if a test
// was skipped that FILE does not list. With -failures it appends the end of a failed run's report to that FILE as well,
// to be shown when all is over.
//
// With -later FILE, the tests that skipped themselves for a run without the race detector are written to FILE and are
// not forbidden: -of FILE runs them, and fails if one of them does not run.
//
// With -again N, if at most N tests failed, it runs them once more, alone. One that passes then is no failure but is
// named as flaky, in that FILE too: it has to be mended. A data race, a panic and a package that failed outside any
// test are failures at once. The packages come last among the arguments and begin with "./".
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	noSkip := flag.Bool("no-skip", os.Getenv("SANDBOXER_NO_SKIP") == "1", "a skipped test is a failure")
	list := flag.String("agreed", "", "file of skips that are all right even so")
	again := flag.Int("again", 0, "how many failed tests are run once more")
	failures := flag.String("failures", "", "file to which the end of a failed run's report is appended")
	later := flag.String("later", "", "file to which the tests are written that another run is to run")
	of := flag.String("of", "", "such a file: run the tests in it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var ok bool
	fine, err := readAgreed(*list)
	if err == nil {
		ok, err = run(ctx, flag.Args(), options{*noSkip, fine, *again, *failures, *later, *of})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

type options struct {
	noSkip              bool
	fine                agreed
	limit               int    // of failed tests that are run once more
	failures, later, of string // files; "" = none
}

func run(ctx context.Context, args []string, o options) (ok bool, err error) {
	told, err := os.OpenFile(cmp.Or(o.failures, os.DevNull), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, told.Close()) }()
	r := newReport(os.Stdout)
	r.later = o.later != ""
	flags, pkgs := split(args)
	if o.of != "" {
		l, err := readLeft(o.of)
		if err != nil || len(l) == 0 {
			return err == nil, err
		}
		var names string
		names, pkgs = l.split()
		flags, r.missing = append(flags, "-run", names), l
	}
	passed, err := test(ctx, r, slices.Concat(flags, pkgs))
	if err == nil && !passed && o.limit > 0 {
		passed, err = runAgain(ctx, r, flags, o.limit)
	}
	if r.later {
		err = errors.Join(err, r.leave(o.later))
	}
	return r.close(o.noSkip, o.fine, told) && passed, err
}

// split tells the flags of go test from its packages.
func split(args []string) (flags, pkgs []string) {
	n := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "./") })
	if n < 0 {
		n = len(args)
	}
	return slices.Clone(args[:n]), args[n:]
}

// test runs `go test` and returns whether it was content.
func test(ctx context.Context, r *report, args []string) (bool, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	readErr := r.read(events)
	waitErr := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(waitErr, &exit) {
		waitErr = nil // a failed test; the report says which
	}
	return exit == nil, errors.Join(readErr, waitErr)
}

// runAgain runs the few tests that failed once more, alone, and returns whether none is left that failed.
func runAgain(ctx context.Context, r *report, flags []string, limit int) (bool, error) {
	few := r.few(limit)
	if len(few) == 0 {
		return false, nil
	}
	for pkg, tests := range few {
		second := newReport(os.Stdout)
		ok, err := test(ctx, second, append(slices.Clone(flags), "-run", "^("+strings.Join(tests, "|")+")$", pkg))
		if err != nil || !ok {
			return false, err
		}
		r.flaky(pkg, second)
	}
	return true, nil
}
