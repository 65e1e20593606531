package place

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// vendor is a place whose answers a test writes: create takes one call a second, and says so.
type vendor struct {
	extensions.Backend
	mu      sync.Mutex
	refused int
	free    time.Time // when it takes the next call
	starts  []time.Time
	fail    []error // answers of status and wait-ready, in order; then success
	asked   int
}

const perCall = time.Second

func (v *vendor) Provision(context.Context, extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if now.Before(v.free) {
		v.refused++
		return extensions.Handle{}, extensions.Observation{}, told(extensions.KindUnavailable, v.free.Sub(now))
	}
	v.free, v.starts = now.Add(perCall), append(v.starts, now)
	return extensions.Handle{ID: "x"}, extensions.Observation{}, nil
}

func (v *vendor) next() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	if len(v.fail) == 0 {
		return nil
	}
	err := v.fail[0]
	v.fail = v.fail[1:]
	return err
}

func (v *vendor) WaitReady(context.Context, extensions.Spec, extensions.Handle) (extensions.Observation, error) {
	return extensions.Observation{Phase: extensions.PhaseReady, Reachability: extensions.Reachability{WorkDir: "/w"}}, v.next()
}

func (v *vendor) Find(context.Context, extensions.ID) (extensions.Handle, error) {
	return extensions.Handle{}, v.next()
}

func (v *vendor) Teardown(context.Context, extensions.Handle) (extensions.CleanupReport, error) {
	return extensions.CleanupReport{}, v.next()
}

func (v *vendor) Status(_ context.Context, hs []extensions.Handle) ([]extensions.Observation, error) {
	if err := v.next(); err != nil {
		return []extensions.Observation{{Phase: extensions.PhaseUnreachable, Err: err}}, nil
	}
	return make([]extensions.Observation, len(hs)), nil
}

func told(kind extensions.Kind, after time.Duration) error {
	e := extensions.Errorf(kind, "not now")
	e.RetryAfter = after
	return e
}

func at(v *vendor) *Backend {
	p := New(Options{Catalog: &catalog.Catalog{}, Now: time.Now, Clock: time.Now, Log: slog.New(slog.DiscardHandler)})
	return &Backend{opened: &opened{backend: v, places: p, Binding: catalog.Binding{ID: "ext.x"}, at: Address{Binding: "ext.x"}}}
}

func create(ctx context.Context, b *Backend) error {
	_, err := b.Provision(ctx, extensions.Spec{}, func(context.Context, *extensions.Spec) error { return nil },
		func(_ context.Context, _ extensions.Handle, _ extensions.Observation, err error) error { return err })
	return err
}

// The time of these tests is not real: what they wait for takes none.
func TestTenCreatesSucceedAtAVendorThatTakesOneASecond(t *testing.T) {
	t.Parallel()
	for name, apart := range map[string]time.Duration{"at once": 0, "one after the other": 10 * time.Millisecond, "in pairs": 700 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &vendor{}
				b := at(v)
				var wg sync.WaitGroup
				for n := range 10 {
					wg.Go(func() {
						time.Sleep(time.Duration(n) * apart)
						if err := create(t.Context(), b); err != nil {
							t.Error(err)
						}
					})
				}
				began := time.Now()
				wg.Wait()
				if took := time.Since(began); len(v.starts) != 10 || took > 15*perCall {
					t.Errorf("%d were made within %s", len(v.starts), took)
				}
				if v.refused > 12 { // nine at once; who waits knows its turn
					t.Errorf("the vendor refused %d calls", v.refused)
				}
			})
		})
	}
}

// A place that asks for fewer calls and then takes none is not waited for without end, not even by those who
// never called.
func TestWhoWaitsForATurnGivesUpToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &vendor{free: time.Now().Add(time.Hour)}
		b := at(v)
		b.places.pacer.slow("provision\x00"+b.at.key(), time.Hour)
		began := time.Now()
		err := create(t.Context(), b)
		if took := time.Since(began); !extensions.IsKind(err, extensions.KindUnavailable) || took != patienceChange.told || extensions.RemedyOf(err) == "" {
			t.Errorf("%v after %s", err, took)
		}
		time.Sleep(2 * time.Hour) // nobody asked for fewer for long
		if err := create(t.Context(), b); err != nil {
			t.Error(err)
		}
	})
}

// Ready is waited for whatever a gateway says meanwhile, as the wait changes nothing.
func TestALongPollSurvivesFiveBadGateways(t *testing.T) {
	t.Parallel()
	for _, kind := range []extensions.Kind{extensions.KindUnavailable, extensions.KindUnreachable, extensions.KindIndeterminate} {
		synctest.Test(t, func(t *testing.T) {
			v := &vendor{}
			for range 5 {
				v.fail = append(v.fail, told(kind, 0))
			}
			if reach, err := at(v).WaitReady(t.Context(), extensions.Spec{}, extensions.Handle{}); err != nil || reach.Reachability.WorkDir != "/w" || v.asked != 6 {
				t.Errorf("%s: %v after %d calls", kind, err, v.asked)
			}
		})
	}
}

func TestRetriesEndWithTheirPatience(t *testing.T) {
	t.Parallel()
	always := func(err error) []error { return slices.Repeat([]error{err}, 10000) }
	for name, c := range map[string]struct {
		err         error
		least, most time.Duration
		deadline    time.Duration
	}{
		"unavailable":                {told(extensions.KindUnavailable, 0), time.Second, patienceChange.own, 0},
		"unreachable":                {told(extensions.KindUnreachable, 0), time.Second, patienceChange.own, 0},
		"half of the caller's time":  {told(extensions.KindUnavailable, 0), 0, 2 * time.Second, 4 * time.Second},
		"told when, again and again": {told(extensions.KindUnavailable, 5*time.Second), time.Minute, patienceChange.told, 0},
		"told, and no time for it":   {told(extensions.KindUnavailable, 5*time.Second), 0, 0, 8 * time.Second},
		"told to wait too long":      {told(extensions.KindUnavailable, time.Minute), 0, 0, 0},
		"told at once":               {told(extensions.KindUnavailable, time.Nanosecond), time.Minute, patienceChange.told, 0},
		"silent for now":             {told(extensions.KindUnreachable, 5*time.Second), time.Minute, patienceChange.told, 0},
		"may have happened":          {told(extensions.KindIndeterminate, 0), 0, 0, 0},
		"invalid":                    {told(extensions.KindInvalid, time.Second), 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &vendor{fail: always(c.err)}
				ctx := t.Context()
				if c.deadline > 0 {
					with, cancel := context.WithTimeout(ctx, c.deadline)
					defer cancel()
					ctx = with
				}
				began := time.Now()
				_, err := at(v).Teardown(ctx, extensions.Handle{})
				if took := time.Since(began); took < c.least || took > c.most || extensions.KindOf(err) != extensions.KindOf(c.err) {
					t.Errorf("%v after %s and %d calls", err, took, v.asked)
				}
			})
		})
	}
}

// What Find cannot prove is for its caller, who knows how long to look.
func TestWhatAFindCannotProveIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &vendor{fail: []error{told(extensions.KindIndeterminate, 0)}}
		if _, err := at(v).Find(t.Context(), "x"); !extensions.IsKind(err, extensions.KindIndeterminate) || v.asked != 1 {
			t.Errorf("%v after %d calls", err, v.asked)
		}
	})
}

func TestALookAtOneThatCannotBeReachedIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &vendor{fail: []error{told(extensions.KindUnreachable, 0), told(extensions.KindIndeterminate, 0)}}
		if o, err := at(v).Look(t.Context(), extensions.Handle{}); err != nil || o.Phase != "" || v.asked != 3 {
			t.Errorf("%+v, %v after %d calls", o, err, v.asked)
		}
	})
}

// Waits differ, so that those who were refused together do not come back together.
func TestBackoffIsSpreadOverItsWholeRange(t *testing.T) {
	t.Parallel()
	err := told(extensions.KindUnavailable, 0)
	for _, jitter := range []float64{0, 0.5, 0.999} {
		r := retries{left: patience{own: time.Hour}}
		for n := range 12 {
			full := min(backoffFirst<<min(n, 10), backoffMost)
			if wait, _, ok := r.after(err, 0, jitter); !ok || wait != time.Duration(jitter*float64(full)) {
				t.Errorf("wait %d at %g: %s", n, jitter, wait)
			}
		}
	}
	r := retries{left: patience{told: time.Hour}}
	if wait, byPlace, _ := r.after(told(extensions.KindUnavailable, 10*time.Second), 0, 0.999); !byPlace || wait < 10*time.Second ||
		wait > 11*time.Second {
		t.Errorf("what the place asked for: %s", wait)
	}
}
