package engine_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// keyed has a key for the stub vendors.
func keyed(key string) with { return func(b *bench) { rent(&b.Options, keyOf(key)) } }

func keyOf(key string) logins {
	return logins{"ext.saas-stub": {"api_key": key}, "ext.saas-stub-eventual": {"api_key": key}}
}

// newTeams is a bench with a key of a team: key-other shows nothing of what key-mine and its successor key-rotated show.
func newTeams(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, keyed("key-mine"))
	teams := saasstub.Script{Teams: map[string]string{"key-mine": "one", "key-rotated": "one", "key-other": "two"}}
	for _, dir := range []string{b.vendor, filepath.Join(b.StateDir, saasstub.EventualHandler)} {
		if err := saasstub.WriteScript(dir, teams); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// unproven demands that a call did not take for gone what it did not find, and says what to do.
func unproven(t *testing.T, what string, err error) {
	t.Helper()
	if !extensions.IsKind(err, extensions.KindUnreachable) || !errors.Is(err, extensions.ErrElsewhere) ||
		!strings.Contains(extensions.RemedyOf(err), "the credential that it was created with") {
		t.Errorf("%s: %s", what, told(err))
	}
}

func TestAKeyOfAnotherAccountProvesNothingGone(t *testing.T) {
	t.Parallel()
	b := newTeams(t)
	s := b.create(engine.Request{Name: "one", TTL: "5m"})
	snap, err := b.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{Name: "kept"})
	if err != nil {
		t.Fatal(told(err))
	}
	if id := s.Receipt.Identity; len(id) != 16 || strings.Contains(id, "mine") {
		t.Errorf("the identity is %q", id)
	}
	for what, e := range map[string]*engine.Engine{"with its ledger": b.reopen(keyed("key-other")),
		"by its receipt": b.elsewhere(keyed("key-other"))} {
		_, err := e.Get(t.Context(), s.Receipt)
		unproven(t, what+": a read", err)
		_, err = e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
		unproven(t, what+": a destroy", err)
		_, err = e.GetSnapshot(t.Context(), snap)
		unproven(t, what+": a read of a snapshot", err)
		_, err = e.DeleteSnapshot(t.Context(), snap, false)
		unproven(t, what+": a delete of a snapshot", err)
	}
	other := b.reopen(keyed("key-other"))
	r, err := other.Sweep(t.Context(), false, nil)
	if all := strings.Join(r.Failures, "\n"); err != nil || len(r.Settled)+len(r.Ended)+len(r.Snapshots) > 0 ||
		!strings.Contains(all, string(s.ID)) || !strings.Contains(all, snap.ID) {
		t.Errorf("a sweep: %+v, %s", r, told(err))
	}
	_, err = other.Create(t.Context(), engine.Request{Profile: "profile.stub", Name: "one"}, nil, nil)
	if text := told(err); !extensions.IsKind(err, extensions.KindConflict) || !strings.Contains(text, "another account") {
		t.Errorf("its name: %s", text)
	}
	if there := b.alive(); len(there) != 1 {
		t.Fatalf("%v are there", there)
	}
	mine := b.reopen()
	if _, err := mine.DeleteSnapshot(t.Context(), snap, false); err != nil {
		t.Error(told(err))
	}
	if report, err := mine.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil || report.AlreadyGone || len(b.alive()) > 0 {
		t.Errorf("%+v, %s; %v are there", report, told(err), b.alive())
	}
	b.clean()
}

// Five minutes after the deadline that its place enforces, it counts as ended for whoever asks, and a new one gets its name.
func TestWhatAnotherAccountHadCountsAsEndedInTheEnd(t *testing.T) {
	t.Parallel()
	takesLong(t)
	b := newTeams(t)
	s := b.create(engine.Request{Name: "one", TTL: "5m"})
	keyed("key-other")(b)
	early := b.later(6 * time.Minute)
	_, err := early.Get(t.Context(), s.Receipt)
	unproven(t, "a read", err)
	if r, err := early.Sweep(t.Context(), false, nil); err != nil || len(r.Settled)+len(r.Ended) > 0 || len(r.Failures) != 1 {
		t.Errorf("%+v, %s", r, told(err))
	}
	late := b.later(5 * time.Minute)
	for what, e := range map[string]*engine.Engine{"with its ledger": late, "by its receipt": b.elsewhere()} {
		if got, err := e.Get(t.Context(), s.Receipt); err != nil || got.State != "expired" {
			t.Errorf("%s: it is %s: %s", what, got.State, told(err))
		}
	}
	if report, err := b.elsewhere().Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil || !report.AlreadyGone {
		t.Errorf("by its receipt: %+v, %s", report, told(err))
	}
	if r, err := late.Sweep(t.Context(), false, nil); err != nil || len(r.Settled) != 1 || len(r.Failures) > 0 {
		t.Errorf("%+v, %s", r, told(err))
	}
	b.make(late, engine.Request{Name: "one"})
	b.clean()
}

// What a new key of the same account finds is used as ever, and is its own from the next change on.
func TestARotatedKeyWorksAndIsTakenOver(t *testing.T) {
	t.Parallel()
	b := newTeams(t)
	s := b.create(engine.Request{Name: "one", TTL: "1h"})
	rotated := b.reopen(keyed("key-rotated"))
	if got, err := rotated.Get(t.Context(), s.Receipt); err != nil || got.State != "ready" || len(got.Notices) > 0 {
		t.Errorf("%+v, %s", got, told(err))
	}
	later, err := rotated.Update(t.Context(), s.Receipt, engine.Request{Profile: "profile.stub", Name: "one", TTL: "2h"}, nil)
	if err != nil || later.Receipt.Identity == s.Receipt.Identity || len(later.Receipt.Identity) != 16 {
		t.Errorf("%q, then %q: %s", s.Receipt.Identity, later.Receipt.Identity, told(err))
	}
	if err := vendor.At(b.vendor).Vanish(string(s.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := rotated.Get(t.Context(), later.Receipt); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("what is gone: %s", told(err))
	}
	_, err = b.reopen().Get(t.Context(), later.Receipt)
	unproven(t, "by the former key", err)
	if report, err := rotated.Destroy(t.Context(), later.Receipt, engine.DestroyOptions{}); err != nil || !report.AlreadyGone {
		t.Errorf("%+v, %s", report, told(err))
	}
	b.clean()
}

// A run that died told nobody what its place had made: only its own credential can find out.
func TestWhatARunThatDiedMadeIsNotLookedForWithAnotherKey(t *testing.T) {
	t.Parallel()
	killing(t)
	for _, profile := range []string{"profile.stub", "profile.eventual"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newTeams(t)
			b.killed(order{Do: "create", Profile: profile, Name: "one", Logins: keyOf("key-mine")}, "engine.create.provisioned")
			id := b.rows()[0].ID
			other := b.reopen(keyed("key-other"))
			if r, err := other.Sweep(t.Context(), false, nil); err != nil || len(r.Settled)+len(r.Ended) > 0 {
				t.Errorf("%+v, %s", r, told(err))
			}
			_, err := other.Create(t.Context(), engine.Request{Profile: profile, Name: "one"}, nil, nil)
			if !extensions.IsKind(err, extensions.KindConflict) && !extensions.IsKind(err, extensions.KindIndeterminate) {
				t.Errorf("its name: %s", told(err))
			}
			_ = other.Close() // as a run that ends does: what it could not settle is the next one's
			if row, err := b.book().Get(t.Context(), id); err != nil || row.State == "destroyed" {
				t.Errorf("%s, %v", row.State, err)
			}
			b.converge(profile, "one")
			there := slices.Concat(b.alive(), b.holds(filepath.Join(b.StateDir, saasstub.EventualHandler)))
			if len(there) != 1 || there[0] == string(id) {
				t.Errorf("%v are there", there)
			}
			b.clean()
		})
	}
}

// For each vendor, an account is another one if its credential is, or what else tells it.
func TestNoVendorsOtherAccountProvesItGone(t *testing.T) {
	t.Parallel()
	takesLong(t)
	vendors := []string{"daytona", "e2b", "modal", "openshell", "vercel"}
	profiles := map[string]string{}
	for _, v := range vendors {
		profiles[v] = "extension: ext." + v + "\n" + denied
	}
	m, other := newMarket(t, profiles), newMarket(t, profiles)
	stranger := m.reopen(func(b *bench) { b.Catalog, b.Credentials = other.Catalog, other.Credentials })
	var all []engine.Sandbox
	for _, v := range vendors {
		all = append(all, m.create(engine.Request{Profile: "profile." + v, Name: v}))
	}
	for _, s := range all {
		_, err := stranger.Get(t.Context(), s.Receipt)
		unproven(t, s.Name+": a read", err)
		_, err = stranger.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
		unproven(t, s.Name+": a destroy", err)
	}
	for _, s := range all {
		if report, err := m.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil || report.AlreadyGone {
			t.Errorf("%s: %+v, %s", s.Name, report, told(err))
		}
	}
	m.clean()
}
