package conformance

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// filesRun runs the checks of files on an extension with this upload in place of its own, and returns what failed and how
// many sandboxes were made. None may be left.
func filesRun(t *testing.T, upload func(b *broken, ctx context.Context, h extensions.Handle, dir string, r io.Reader) error) (failed []string, made int) {
	t.Helper()
	var mu sync.Mutex
	living := map[extensions.ID]bool{}
	ext := brokenExtension{whole: newWhole(), m: mutant{
		upload: upload,
		provision: func(b *broken, ctx context.Context, s extensions.Spec) (extensions.Handle, extensions.Observation, error) {
			h, o, err := b.wholeBackend.Provision(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			living[h.ID] = true
			made++
			return h, o, err
		},
		teardown: func(b *broken, ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
			r, err := b.wholeBackend.Teardown(ctx, h)
			mu.Lock()
			defer mu.Unlock()
			delete(living, h.ID)
			return r, err
		},
	}}
	results, err := Run(t.Context(), harnessFor(ext), Choice{AtOnce: 3, Only: []string{"files"}}, func(Result) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Outcome != Passed {
			failed = append(failed, r.Name+": "+strings.Join(r.Said, "\n"))
		}
	}
	if len(living) > 0 {
		t.Errorf("left: %v", living)
	}
	return failed, made
}

func TestChecksOfAGroupShareASandbox(t *testing.T) {
	t.Parallel()
	apart := 0
	for _, c := range fileChecks {
		if !c.shares {
			apart++
		}
	}
	if failed, made := filesRun(t, nil); len(failed) > 0 || made != apart+1 {
		t.Errorf("%d sandboxes were made, want one and %d for those that do not share; failed: %q", made, apart, failed)
	}
}

// A check finds a usable sandbox whatever the one before it did.
func TestWhatACheckEndsIsReplacedForTheNext(t *testing.T) {
	t.Parallel()
	failed, made := filesRun(t, func(b *broken, ctx context.Context, h extensions.Handle, dir string, r io.Reader) error {
		if dir == "in" { // only files/roundtrip uploads there
			_, err := b.Teardown(ctx, h)
			return err
		}
		return b.wholeBackend.Upload(ctx, h, dir, r)
	})
	if len(failed) != 1 || !strings.HasPrefix(failed[0], "files/roundtrip: ") || made != 2 {
		t.Errorf("%d sandboxes were made; failed: %q, want files/roundtrip alone", made, failed)
	}
}

func TestChecksThatShareRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var now, most int
	dirs := []string{}
	failed, _ := filesRun(t, func(b *broken, ctx context.Context, h extensions.Handle, dir string, r io.Reader) error {
		mu.Lock()
		now, dirs = now+1, append(dirs, dir)
		most = max(most, now)
		mu.Unlock()
		err := b.wholeBackend.Upload(ctx, h, dir, r)
		mu.Lock()
		now--
		mu.Unlock()
		return err
	})
	if len(failed) > 0 || most > 1 || !slices.Contains(dirs, "in") {
		t.Errorf("%d uploads at once, to %q; failed: %q", most, dirs, failed)
	}
}
