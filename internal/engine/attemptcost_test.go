package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func TestAnAttemptThatFailedIsPaidForAtItsOwnPlace(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	const wasted = 300 * time.Millisecond
	w.does(w.vendor, saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoNoCapacity, Delay: vendor.Duration(wasted)})
	s := w.create(engine.Request{Profile: "profile.two", Name: "one"})
	ms := w.meters(s.ID)
	if len(ms) != 2 || ms[0].Open() || !ms[1].Open() || ms[0].For.Extension != "ext.first" || ms[1].For.Extension != "ext.second" {
		t.Fatalf("meters: %+v", ms)
	}
	if lasted := ms[0].ClosedAt.Sub(ms[0].OpenedAt); lasted < wasted || ms[0].StartSource != "backend" || ms[0].EndSource != "backend" {
		t.Errorf("the first attempt lasted %s by the clocks of %s and %s", lasted, ms[0].StartSource, ms[0].EndSource)
	}
	if cs, err := w.Charges(t.Context(), s.ID); err != nil || len(cs) != 1 || cs[0].Amount < "0.00003" {
		t.Errorf("charges %+v, %v", cs, err)
	}
	w.end(s)
	w.clean()
}

func TestAStartThatIsTakenBackByADeadRunsSuccessorIsPaidFor(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"engine.create.provisioned", "engine.create.handle", "engine.create.ready"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newTwo(t)
			w.run(order{Do: "create", Profile: "profile.first", Name: "one"}, failpointtest.Env+"="+point+":kill", 0)
			if len(w.holds(w.vendor)) != 1 {
				t.Fatal("nothing was made before the kill")
			}
			const wasted = 200 * time.Millisecond
			time.Sleep(wasted) // so long it costs without anybody
			if err := w.reopen().Recover(t.Context(), nil); err != nil || len(w.holds(w.vendor)) != 0 {
				t.Fatalf("%v, %d left", err, len(w.holds(w.vendor)))
			}
			rows, err := w.book().List(t.Context(), ledger.Filter{})
			if err != nil || len(rows) != 1 {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			ms := w.meters(rows[0].ID)
			if len(ms) != 1 || ms[0].Open() || ms[0].ClosedAt.Sub(ms[0].OpenedAt) < wasted || ms[0].StartSource != "backend" {
				t.Errorf("meters: %+v", ms)
			}
			w.clean()
		})
	}
}

func TestAPlaceThatStartsLaterCostsFromThen(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.does(w.vendor, saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoStartLater, Delay: vendor.Duration(500 * time.Millisecond)})
	s := w.create(engine.Request{Profile: "profile.first", Name: "one"})
	objs, err := vendor.At(w.vendor).Objects()
	if ms := w.meters(s.ID); err != nil || len(ms) != 1 || ms[0].OpenedAt.Sub(objs[0].BilledAt).Abs() > time.Millisecond ||
		ms[0].StartSource != "backend" || !ms[0].Segments[0].StartedAt.Equal(ms[0].OpenedAt) {
		t.Errorf("%v, billed from %s, metered %+v", err, objs[0].BilledAt, ms)
	}
	w.end(s)
	w.clean()
}

func TestASizeThatAPlaceGivesIsPriced(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.does(w.vendor, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoGrow})
	s := w.create(engine.Request{Profile: "profile.first", Name: "one"})
	if ms := w.meters(s.ID); len(ms) != 1 || len(ms[0].Segments) != 1 || ms[0].Segments[0].Sizes["milli_vcpu"] != 2000 {
		t.Errorf("metered %+v", ms)
	}
	w.end(s)
	w.clean()
}

func TestAPlaceThatTurnsOutTooDearIsLeftForTheNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile, maxCost string
		made             bool
	}{
		// For an hour the second costs 3.60 USD, and 7.20 as large as it turns out to be; the first 0.36.
		"another is there": {"profile.dearest", "4.00 USD", true},
		"no other":         {"profile.second", "4.00 USD", false},
		"dear enough":      {"profile.second", "7.20 USD", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwo(t)
			w.does(w.dear, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoGrow})
			s, err := w.Create(t.Context(), engine.Request{Profile: c.profile, Name: "one", MaxCost: c.maxCost}, nil, nil)
			if !c.made {
				if !extensions.IsKind(err, extensions.KindInvalid) || extensions.FieldOf(err) != "max_cost" || s.ID != "" ||
					!strings.Contains(err.Error(), "7.2") || len(w.holds(w.dear)) != 0 {
					t.Errorf("%q, %d there: %v (%s)", s.ID, len(w.holds(w.dear)), err, extensions.FieldOf(err))
				}
				w.paidFor("ext.second", 2000)
				return
			}
			if err != nil {
				t.Fatal(told(err))
			}
			if want := map[string]int{"profile.dearest": 0, "profile.second": 1}[c.profile]; len(w.holds(w.dear)) != want || len(w.holds(w.vendor)) != 1-want {
				t.Errorf("the first has %d, the second %d", len(w.holds(w.vendor)), len(w.holds(w.dear)))
			}
			w.paidFor("ext.second", 2000)
			w.end(s)
			w.clean()
		})
	}
}

// paidFor demands that the first meter of the only sandbox counts the size that its place gave.
func (b *bench) paidFor(extension string, milliCPU int64) {
	b.t.Helper()
	rows, err := b.book().List(b.t.Context(), ledger.Filter{})
	if err != nil || len(rows) != 1 {
		b.t.Fatalf("%d rows, %v", len(rows), err)
	}
	ms := b.meters(rows[0].ID)
	if len(ms) == 0 || ms[0].For.Extension != extension || ms[0].Last().Sizes["milli_vcpu"] != milliCPU {
		b.t.Errorf("%s gave %d, metered %+v", extension, milliCPU, ms)
	}
	b.clean()
}

func TestASizeThatNothingPaysForIsChargedUntilItsPlaceIsLeft(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.limit("acme/web", 4_000_000_000) // for an hour it needs 3.60 USD, and 7.20 as large as it turns out to be
	w.does(w.dear, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoGrow},
		saasstub.Rule{Op: vendor.OpGet, Do: vendor.DoInvalid, Skip: 1, Times: 1}) // it tells its size once
	s, err := w.Create(t.Context(), engine.Request{Profile: "profile.second", Name: "one"}, nil, nil)
	if !extensions.IsKind(err, extensions.KindExhausted) || s.ID != "" {
		t.Fatalf("%q: %v", s.ID, err)
	}
	w.paidFor("ext.second", 2000)
}

func TestWhatWasNeverReadyIsChargedByTheSizeThatItsPlaceGave(t *testing.T) {
	t.Parallel()
	grows := saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoGrow}
	t.Run("it fails", func(t *testing.T) {
		t.Parallel()
		w := newTwo(t)
		w.does(w.vendor, grows, saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoInvalid})
		if s, err := w.Create(t.Context(), engine.Request{Profile: "profile.first", Name: "one"}, nil, nil); err == nil || s.ID != "" {
			t.Fatalf("%q: %v", s.ID, err)
		}
		w.paidFor("ext.first", 2000)
	})
	for _, point := range []string{"engine.create.provisioned", "engine.create.handle"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newTwo(t)
			w.does(w.vendor, grows)
			w.run(order{Do: "create", Profile: "profile.first", Name: "one"}, failpointtest.Env+"="+point+":kill", 0)
			if err := w.reopen().Recover(t.Context(), nil); err != nil || len(w.holds(w.vendor)) != 0 {
				t.Fatalf("%v, %d left", err, len(w.holds(w.vendor)))
			}
			w.paidFor("ext.first", 2000)
		})
	}
	t.Run("its place does not answer the look", func(t *testing.T) {
		t.Parallel()
		w := newTwo(t)
		w.does(w.vendor, grows, saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoInvalid},
			saasstub.Rule{Op: vendor.OpGet, Do: vendor.DoInvalid, Times: 1})
		if s, err := w.Create(t.Context(), engine.Request{Profile: "profile.first", Name: "one"}, nil, nil); err == nil || s.ID != "" {
			t.Fatalf("%q: %v", s.ID, err)
		}
		w.paidFor("ext.first", 1000)
	})
}
