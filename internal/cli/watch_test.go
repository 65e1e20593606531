package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestWatchPrintsWhatChangedUntilItIsStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out strings.Builder
	a := &app{out: &out, err: io.Discard}
	lists := []string{"one\n", "one\n", "two\n", ""}
	err := a.watch(ctx, time.Millisecond, func() error {
		now := lists[0]
		if lists = lists[1:]; len(lists) == 0 {
			stop()
		}
		_, err := fmt.Fprint(a.out, now)
		return err
	})
	if err != nil || out.String() != "one\ntwo\n" {
		t.Errorf("%v: %q", err, &out)
	}
	if a.out != io.Writer(&out) {
		t.Error("the output was not given back")
	}
}

func TestWatchEndsWithTheFirstFailure(t *testing.T) {
	t.Parallel()
	a := &app{out: io.Discard, err: io.Discard}
	broken := errors.New("broken")
	if err := a.watch(t.Context(), time.Hour, func() error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestAFrameStaysOnTheTerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := draw(&out, strings.Repeat("row\n", 50), 10, true); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 9 || !strings.Contains(out.String(), "…") {
		t.Errorf("%d lines: %q", n, &out)
	}
}
