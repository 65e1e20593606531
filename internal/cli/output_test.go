package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestRelativeTimesReadWell(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		90*time.Second - 1:            "in 2m",
		42*time.Second + 1:            "in 42s",
		time.Hour - time.Second:       "in 1h",
		time.Hour + 30*time.Minute:    "in 1h30m",
		26 * time.Hour:                "in 1d2h",
		48 * time.Hour:                "in 2d",
		-3 * time.Minute:              "3m ago",
		-(49*time.Hour + time.Minute): "2d1h ago",
		-1400 * time.Millisecond:      "1s ago",
	} {
		if got := relative(now.Add(d), now); got != want {
			t.Errorf("relative(%s) = %q, want %q", d, got, want)
		}
	}
	if got := relative(time.Time{}, now); got != "" {
		t.Errorf("an unknown time reads %q", got)
	}
}

func TestEveryKindHasItsExitCode(t *testing.T) {
	t.Parallel()
	for kind, want := range map[extensions.Kind]int{
		extensions.KindInvalid:       2,
		extensions.KindUnauthorized:  6,
		extensions.KindNotFound:      3,
		extensions.KindConflict:      4,
		extensions.KindIndeterminate: 5,
		extensions.KindExhausted:     5,
		extensions.KindUnavailable:   5,
		extensions.KindUnreachable:   5,
		extensions.KindTimeout:       5,
		extensions.KindUnsupported:   7,
		extensions.KindInternal:      1,
	} {
		if got := codeOf(extensions.Errorf(kind, "x")); got != want {
			t.Errorf("%s exits %d, want %d", kind, got, want)
		}
	}
	if got := codeOf(errors.New("unclassified")); got != exitFailed {
		t.Errorf("an unclassified error exits %d", got)
	}
}

func TestUnknownAmountsAreNeverZero(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ low, high, want string }{
		{"", "", "unknown"},
		{"0.10", "", "unknown"},
		{"0.10", "0.10", "0.10 USD"},
		{"0.10", "0.40", "0.10 to 0.40 USD"},
		{"", "0.40", "0.40 USD"},
	} {
		if got := amountRange(c.low, c.high, "USD"); got != c.want {
			t.Errorf("%q to %q prints %q, want %q", c.low, c.high, got, c.want)
		}
	}
}

// People read six significant digits, and never less than the most that it can cost.
func TestEstimatesAreRoundedAndMaximaUpwards(t *testing.T) {
	t.Parallel()
	q := engine.Quoted{Planned: engine.Planned{Estimate: engine.Estimate{HourlyLow: "1.2491561", HourlyHigh: "1.2491569", Maximum: "5.97974401", Currency: "USD",
		Candidates: []engine.EstimateCandidate{{Extension: "ext.x", Eligible: true, Order: 1, Hourly: "1.2491561", Expected: "2.0000004",
			Maximum: "5.97974401", Currency: "USD"}}}}}
	var out strings.Builder
	if err := (&app{}).printQuote(&out, q); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"per hour  1.24916 USD\n", "at most   5.97975 USD\n", "1.24916 USD  2.00 USD  5.97975 USD"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed in\n%s", want, out.String())
		}
	}
}

// What a remote side says cannot draw on the terminal or forge a row.
func TestGridPrintsNoControlCharacters(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := grid(&out, [][]string{{"A", "B"}, {"x\x1b[2J\nforged", ""}}); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, "\x1b") || strings.Count(s, "\n") != 2 || !strings.Contains(s, "-") {
		t.Errorf("printed %q", s)
	}
}

type unread struct{}

func (unread) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

// What runs inside must not go on for a reader that has gone, wherever it runs.
func TestACommandEndsOnceNobodyReadsItsOutput(t *testing.T) {
	t.Parallel()
	a := &app{out: unread{}, err: io.Discard}
	ctx, out, errs, done := a.streams(t.Context())
	defer done()
	if _, err := errs.Write([]byte("x")); err != nil || ctx.Err() != nil {
		t.Errorf("somebody reads: %v, %v", err, ctx.Err())
	}
	if _, err := out.Write([]byte("x")); err == nil || !errors.Is(context.Cause(ctx), errClosed) {
		t.Errorf("nobody reads: %v, %v", err, context.Cause(ctx))
	}
}
