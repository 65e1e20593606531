package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Only what giving up explains is told as that, and only where somebody gave up.
func TestAFailureIsAnInterruptionWhereTheCallerGaveUp(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, stop := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer stop()
	for kind, explained := range map[extensions.Kind]bool{
		extensions.KindTimeout: true, extensions.KindIndeterminate: true, extensions.KindUnreachable: true, extensions.KindUnavailable: true,
		extensions.KindInternal: true, extensions.KindInterrupted: true, extensions.KindInvalid: false, extensions.KindConflict: false,
		extensions.KindExhausted: false, extensions.KindUnauthorized: false, extensions.KindUnsupported: false, extensions.KindNotFound: false,
		extensions.KindFailed: false,
	} {
		err := extensions.Errorf(kind, "it did not go on").WithRemedy("raise the timeout")
		if kind == extensions.KindInterrupted {
			err.Remedy = ""
		}
		got := engine.GivenUp(cancelled, err)
		if extensions.IsKind(got, extensions.KindInterrupted) != explained || !errors.Is(got, err) || explained &&
			extensions.RemedyOf(got) == "raise the timeout" {
			t.Errorf("%s became %s: %v, %q", kind, extensions.KindOf(got), got, extensions.RemedyOf(got))
		}
		if got := engine.GivenUp(context.Background(), err); !errors.Is(got, err) || extensions.KindOf(got) != kind {
			t.Errorf("%s, and nobody gave up: %v", kind, got)
		}
		// What was not waited for took too long; anything else has told its cause.
		want := kind
		if kind == extensions.KindIndeterminate || kind == extensions.KindInternal {
			want = extensions.KindTimeout
		}
		if got := engine.GivenUp(late, err); !errors.Is(got, err) || extensions.KindOf(got) != want {
			t.Errorf("%s at the end of its time: %v, want %s", kind, got, want)
		}
	}
	if engine.GivenUp(cancelled, nil) != nil {
		t.Error("a success became a failure")
	}
}
