package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// offline is a machine with places of its own, and a ledger in PostgreSQL that
// can be cut off.
type offline struct {
	*bench
	cut *pgtest.Cutter
	o   order
}

func newOffline(t *testing.T) *offline {
	t.Helper()
	cut := pgtest.NewCutter(t, pgtest.New(t))
	return onShared(t, cut, cut.Address)
}

// onShared is a machine whose ledger is at address.
func onShared(t *testing.T, cut *pgtest.Cutter, address string) *offline {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	t.Cleanup(b.removeAll)
	m := &offline{bench: b, cut: cut, o: order{Dir: b.dir, Profile: "profile.quickstart", Ledger: address, Lease: fleetLease}}
	b.Engine = m.next()
	return m
}

// next is the next run on this machine.
func (m *offline) next() *engine.Engine {
	m.t.Helper()
	e, err := m.o.engine()
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			m.t.Error(err)
		}
	})
	return e
}

var own = engine.Request{Profile: "profile.quickstart", Name: "one", TTL: "10m"}

func (m *offline) sound() {
	m.t.Helper()
	if n, findings, err := m.next().VerifyLedger(context.Background()); err != nil || len(findings) > 0 || n == 0 {
		m.t.Errorf("ledger: %d events, %q, %v", n, findings, err)
	}
}

func (m *offline) spools() (open, done int) {
	m.t.Helper()
	all, err := filepath.Glob(filepath.Join(m.dir, "spool", "*", "ledger.db"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, f := range all {
		info, err := os.Stat(f)
		if err != nil || info.Mode().Perm() != 0o600 {
			m.t.Errorf("%s: %v, %v", f, info.Mode(), err)
		}
		if strings.Contains(filepath.Base(filepath.Dir(f)), "-") {
			done++
		} else {
			open++
		}
	}
	return open, done
}

func TestWithoutTheLedgerWhatCostsMoneyIsRefused(t *testing.T) {
	t.Parallel()
	m := newOffline(t)
	m.cut.Off()
	for _, billing := range []string{"", "byok"} {
		s, err := m.Create(context.Background(), engine.Request{Profile: "profile.stub", Name: "one", Billing: billing}, nil, nil)
		if !extensions.IsKind(err, extensions.KindUnavailable) || s.ID != "" || !strings.Contains(err.Error(), "sends a bill") || extensions.RemedyOf(err) == "" {
			t.Errorf("%q: %s, %v (%s)", billing, s.ID, err, extensions.RemedyOf(err))
		}
	}
	if left := m.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if open, _ := m.spools(); open > 0 {
		t.Error("a spool was made for nothing")
	}
}

func TestWithoutTheLedgerOnesOwnPlacesGoOn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := newOffline(t)
	m.cut.Off()
	var told []engine.Notice
	s, err := m.Create(ctx, own, nil, func(n engine.Notice) { told = append(told, n) })
	if err != nil || !strings.Contains(notices(told), "cannot be reached") {
		t.Fatalf("%v, told %s", err, notices(told))
	}
	e := m.next() // another run, still cut off
	if got, err := e.Get(ctx, s.Receipt); err != nil || got.State != "ready" {
		t.Errorf("get: %s, %v", got.State, err)
	}
	if res, err := e.Exec(ctx, s.Receipt, engine.ExecRequest{Command: []string{"echo", "hi"}}); err != nil || string(res.Stdout) != "hi\n" {
		t.Errorf("exec: %v", err)
	}
	longer, err := e.ExtendTTL(ctx, s.Receipt, time.Hour)
	if err != nil || !longer.ExpiresAt.Equal(s.CreatedAt.Add(time.Hour)) {
		t.Errorf("extend: %v, %v", longer.ExpiresAt, err)
	}
	if _, err := e.Create(ctx, own, nil, nil); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("its name is taken on this machine: %v", err)
	}
	ended, err := e.Create(ctx, engine.Request{Profile: "profile.quickstart", Name: "two", TTL: "10m"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Destroy(ctx, ended.Receipt, engine.DestroyOptions{})
	if err != nil || r.AlreadyGone || len(m.left()) != 1 {
		t.Errorf("destroy: %+v, %v", r, err)
	}
	m.cut.On()
	back := m.next()
	if _, err := back.Sweep(ctx, false, nil); err != nil {
		t.Fatal(err)
	}
	got, err := back.Lookup(ctx, "", "", "one")
	if err != nil || got.ID != s.ID || got.State != "ready" || !got.ExpiresAt.Equal(longer.ExpiresAt) || !got.CreatedAt.Equal(s.CreatedAt) || got.Handle != s.Handle {
		t.Errorf("in the ledger: %+v, %v", got, err)
	}
	over, err := back.Lookup(ctx, ended.ID, "", "")
	if err != nil || over.State != "destroyed" || over.EndedAt.Sub(r.EndedAt).Abs() > time.Millisecond {
		t.Errorf("what ended: %s at %s, it was %s, %v", over.State, over.EndedAt, r.EndedAt, err)
	}
	if cs, err := back.Charges(ctx, ended.ID); err != nil || len(cs) != len(r.Charges) {
		t.Errorf("charges: %v, then %v, %v", r.Charges, cs, err)
	}
	if err := back.Close(); err != nil {
		t.Error(err)
	}
	for _, e := range []*engine.Engine{m.Engine, e} {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	last := m.next()
	if r, err := last.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || r.AlreadyGone || len(m.left()) > 0 {
		t.Errorf("destroyed through the ledger: %+v, %v", r, err)
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
	m.sound()
}

func TestWhatTheLedgerKnowsIsExtendedWithoutItOnOnesOwnPlaces(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := newOffline(t)
	s, err := m.Create(ctx, own, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.cut.Off()
	e := m.next()
	longer := own
	longer.TTL = "2h"
	got, err := e.Update(ctx, s.Receipt, longer, nil)
	if err != nil || !got.ExpiresAt.Equal(s.CreatedAt.Add(2*time.Hour)) || !got.Receipt.ExpiresAt.Equal(got.ExpiresAt) {
		t.Fatalf("%v, %v", got.ExpiresAt, err)
	}
	if seen, err := e.Get(ctx, got.Receipt); err != nil || !seen.ExpiresAt.Equal(got.ExpiresAt) {
		t.Errorf("%v, %v", seen.ExpiresAt, err)
	}
	for name, req := range map[string]engine.Request{"shorter": own, "beyond the profile": {Profile: own.Profile, Name: own.Name, TTL: "2000h"}} {
		if _, err := e.Update(ctx, got.Receipt, req, nil); err == nil {
			t.Errorf("%s: it was changed", name)
		}
	}
	m.cut.On()
	back := m.next()
	if _, err := back.Sweep(ctx, false, nil); err != nil {
		t.Fatal(err)
	}
	row, err := back.Lookup(ctx, s.ID, "", "")
	if err != nil || !row.ExpiresAt.Equal(got.ExpiresAt) || row.Request.TTL != "2h" {
		t.Errorf("in the ledger: %v %s, %v", row.ExpiresAt, row.Request.TTL, err)
	}
	if _, err := back.Destroy(ctx, got.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(err)
	}
	m.sound()
}

// The spool is brought in by whatever needs the ledger, and put away after.
func TestADestroyBringsTheSpoolIn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := newOffline(t)
	m.cut.Off()
	s, err := m.Create(ctx, own, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Engine.Close(); err != nil {
		t.Fatal(err)
	}
	if open, done := m.spools(); open != 1 || done != 0 {
		t.Fatalf("%d spools, %d put away", open, done)
	}
	m.cut.On()
	e := m.next()
	if r, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || r.AlreadyGone || len(m.left()) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if row, err := e.Lookup(ctx, s.ID, "", ""); err != nil || row.State != "destroyed" {
		t.Errorf("%+v, %v", row.State, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if open, done := m.spools(); open != 0 || done != 1 {
		t.Errorf("%d spools, %d put away", open, done)
	}
	m.sound()
}

func TestANameTakenMeanwhileIsAConflictAndEndsNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := pgtest.New(t)
	cut := pgtest.NewCutter(t, address)
	m := onShared(t, cut, cut.Address)
	other := onShared(t, nil, address)
	m.cut.Off()
	s, err := m.Create(ctx, own, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := other.Create(ctx, own, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.cut.On()
	var told []engine.Notice
	e := m.next()
	if _, err := e.Sweep(ctx, false, func(n engine.Notice) { told = append(told, n) }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notices(told), "one name") || !strings.Contains(notices(told), string(theirs.ID)) {
		t.Errorf("told: %s", notices(told))
	}
	if len(m.left()) != 1 || len(other.left()) != 1 {
		t.Errorf("left here %v, there %v", m.left(), other.left())
	}
	if got, err := e.Lookup(ctx, "", "", "one"); err != nil || got.ID != theirs.ID {
		t.Errorf("the name is %s's, %v", got.ID, err)
	}
	got, err := e.Lookup(ctx, s.ID, "", "")
	if err != nil || got.State != "ready" || got.Name != "one" || !strings.Contains(got.Reason, "conflict") {
		t.Errorf("%s %q (%s), %v", got.State, got.Name, got.Reason, err)
	}
	if got, err := e.Get(ctx, s.Receipt); err != nil || got.State != "ready" {
		t.Errorf("read: %s, %v", got.State, err)
	}
	events, err := e.Events(ctx, string(s.ID), 0)
	if err != nil || len(events) == 0 || events[0].Type != "sandbox.conflict" {
		t.Errorf("%+v, %v", events, err)
	}
	if _, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || len(m.left()) != 0 || len(other.left()) != 1 {
		t.Errorf("destroyed: %v, left here %v, there %v", err, m.left(), other.left())
	}
	m.sound()
}

// A receipt of what was made in the spool pins the spool's head. It is checked
// where the spool is kept, told apart where it is not, and is no false alarm.
func TestAReceiptOfTheSpoolIsNoFalseAlarm(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := newOffline(t)
	m.cut.Off()
	s, err := m.Create(ctx, own, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.cut.On()
	back := m.next()
	if _, err := back.Sweep(ctx, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Close(), back.Close()); err != nil { // the last one puts the spool away
		t.Fatal(err)
	}
	e := m.next()
	v, err := e.Verify(ctx, engine.Evidence{Receipts: []engine.Receipt{s.Receipt}})
	if err != nil || len(v.Findings) > 0 || len(v.Notes) > 0 || s.Receipt.Ledger == v.Ledger {
		t.Errorf("where the spool is: %q, %q, %v", v.Findings, v.Notes, err)
	}
	cut := s.Receipt
	cut.Head = strings.Replace(cut.Head, ":acme:", ":acme:9", 1)
	if v, err := e.Verify(ctx, engine.Evidence{Receipts: []engine.Receipt{cut}}); err != nil || len(v.Findings) != 1 || !strings.Contains(v.Findings[0], "the spool") {
		t.Errorf("a spool that was cut: %q, %v", v.Findings, err)
	}
	kept, err := filepath.Glob(filepath.Join(m.dir, "spool", "*-*"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	if err := os.RemoveAll(kept[0]); err != nil {
		t.Fatal(err)
	}
	if v, err := e.Verify(ctx, engine.Evidence{Receipts: []engine.Receipt{s.Receipt}}); err != nil || len(v.Findings) > 0 || len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "cannot be checked here") {
		t.Errorf("where it is not: %q, %q, %v", v.Findings, v.Notes, err)
	}
	strange := s.Receipt
	strange.Head = strings.Replace(strange.Head, strange.Ledger, "unheard", 1)
	if v, err := e.Verify(ctx, engine.Evidence{Receipts: []engine.Receipt{strange}}); err != nil || len(v.Findings) != 1 || !strings.Contains(v.Findings[0], "another ledger") {
		t.Errorf("of a ledger nobody heard of: %q, %v", v.Findings, err)
	}
	got, err := e.Lookup(ctx, "", "", "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Destroy(ctx, got.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(err)
	}
}
