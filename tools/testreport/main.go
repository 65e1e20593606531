// Command testreport runs `go test -json` with its arguments and prints what
// a person needs: go's own closing line of every package, the whole output of
// what failed, and at the end every skipped test with its reason, so that a
// skip is never silent.
//
//	testreport [-no-skip] [-agreed FILE] -- -race ./...
//
// It fails when a test failed, when nothing ran, and with -no-skip (or
// SANDBOXER_NO_SKIP=1 in the environment) when anything was skipped that FILE
// does not list.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	noSkip := flag.Bool("no-skip", os.Getenv("SANDBOXER_NO_SKIP") == "1", "a skipped test is a failure")
	list := flag.String("agreed", "", "file of skips that are all right even so")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var ok bool
	fine, err := readAgreed(*list)
	if err == nil {
		ok, err = run(ctx, flag.Args(), *noSkip, fine, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, noSkip bool, fine agreed, out io.Writer) (bool, error) {
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
	r := newReport(out)
	readErr := r.read(events)
	waitErr := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(waitErr, &exit) {
		waitErr = nil // a failed test; the report says which
	}
	ok := r.close(noSkip, fine) && exit == nil
	return ok, errors.Join(readErr, waitErr)
}
