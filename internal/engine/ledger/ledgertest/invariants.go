package ledgertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// model is the state machine's expectation of the ledger.
type model struct {
	t       *testing.T
	l       *ledger.Ledger
	holder  ledger.HolderID
	account string
	rows    map[extensions.ID]ledger.Sandbox
	claims  map[string]extensions.ID
	last    func() (ledger.Sandbox, error) // the last change, to be repeated
	lastRow ledger.Sandbox
	events  int64
	n       int
}

// invariants runs random lives. Ten runs after each other have a ledger, each with an account of its own there.
func invariants(t *testing.T, address NewAddress) {
	ctx := context.Background()
	var l *ledger.Ledger
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		if runs%10 == 0 {
			l = fresh(t, address)
		}
		runs++
		m := &model{t: t, l: l, holder: holderOf(t, l), account: fmt.Sprintf("org%d/here", runs), rows: map[extensions.ID]ledger.Sandbox{},
			claims: map[string]extensions.ID{}}
		rt.Repeat(map[string]func(*rapid.T){
			"begin":  m.begin,
			"move":   m.move,
			"meter":  m.meter,
			"replay": m.replay,
			"stale":  m.stale,
			"":       m.holds,
		})
		if r := must(l.Verify(ctx))(t); len(r.Problems) > 0 {
			rt.Fatalf("not consistent: %q", r.Problems)
		}
	})
}

func (m *model) begin(rt *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
	b := want(newID(m.t), m.holder, name)
	b.Account = m.account
	s, err := m.l.Begin(context.Background(), b)
	if holder, taken := m.claims[name]; taken {
		if !extensions.IsKind(err, extensions.KindConflict) {
			rt.Fatalf("%s has %q and another got it too: %v", holder, name, err)
		}
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	m.claims[name] = s.ID
	m.did(s, func() (ledger.Sandbox, error) { return m.l.Begin(context.Background(), b) })
}

func (m *model) did(s ledger.Sandbox, again func() (ledger.Sandbox, error)) {
	m.rows[s.ID], m.last, m.lastRow = s, again, s
	m.events++
}

// any draws a sandbox in key order, so that a run can be repeated.
func (m *model) any(rt *rapid.T) ledger.Sandbox {
	if len(m.rows) == 0 {
		rt.Skip("nothing there yet")
	}
	var all []ledger.Sandbox
	for _, s := range must(m.l.List(context.Background(), ledger.Filter{Account: m.account}))(m.t) {
		all = append(all, m.rows[s.ID])
	}
	return rapid.SampledFrom(all).Draw(rt, "sandbox")
}

func (m *model) move(rt *rapid.T) {
	s := m.any(rt)
	to := rapid.SampledFrom(lifecycle.States).Draw(rt, "to")
	if to == s.State {
		rt.Skip("staying is no move")
	}
	m.n++
	c := into(s, to, m.holder)
	c.Key = fmt.Sprintf("%s/%d", s.ID, m.n)
	c.Patch.Reason = ptr(fmt.Sprint(m.n))
	got, err := m.l.Apply(context.Background(), c)
	can := lifecycle.Can(s.State, to)
	if owner, taken := m.claims[s.Name]; to == lifecycle.Provisioning && taken && owner != s.ID {
		can = false
	}
	if can != (err == nil) {
		rt.Fatalf("%s -> %s: %v", s.State, to, err)
	}
	if err != nil {
		return
	}
	switch {
	case lifecycle.FreesName(to) && m.claims[s.Name] == s.ID:
		delete(m.claims, s.Name)
	case to == lifecycle.Provisioning:
		m.claims[s.Name] = s.ID
	}
	m.did(got, func() (ledger.Sandbox, error) { return m.l.Apply(context.Background(), c) })
}

func (m *model) meter(rt *rapid.T) {
	s := m.any(rt)
	if !lifecycle.Usable(s.State) {
		rt.Skip("not running")
	}
	m.n++
	at := Start.Add(time.Duration(rapid.Int64Range(-3600, 7200).Draw(rt, "at")) * time.Second)
	c := ledger.Change{ID: s.ID, Key: fmt.Sprintf("%s/%d", s.ID, m.n),
		Meter: ledger.MeterOps{Switch: &bank.MeterSwitch{At: at, Mode: ledger.Paused, Sizes: sizes}}}
	got, err := m.l.Apply(context.Background(), c)
	if err != nil {
		rt.Fatal(err)
	}
	m.did(got, func() (ledger.Sandbox, error) { return m.l.Apply(context.Background(), c) })
}

func (m *model) replay(rt *rapid.T) {
	if m.last == nil {
		rt.Skip("nothing done yet")
	}
	got, err := m.last()
	if err != nil || got.State != m.lastRow.State || !got.UpdatedAt.Equal(m.lastRow.UpdatedAt) {
		rt.Fatalf("a replay gave %+v, %v", got, err)
	}
}

func (m *model) stale(rt *rapid.T) {
	s := m.any(rt)
	m.n++
	_, err := m.l.Apply(context.Background(),
		ledger.Change{ID: s.ID, Key: fmt.Sprintf("%s/%d", s.ID, m.n), Expect: ledger.Expect{Fence: s.Fence + 1},
			Patch: ledger.Patch{Reason: ptr("stale")}})
	if !extensions.IsKind(err, extensions.KindConflict) {
		rt.Fatalf("want stale, got %v", err)
	}
}

// holds is checked after every step.
func (m *model) holds(rt *rapid.T) {
	ctx := context.Background()
	head := must(m.l.Head(ctx, ledger.StreamOf(m.account)))(m.t)
	if head.Seq != m.events {
		rt.Fatalf("%d events for %d changes", head.Seq, m.events)
	}
	for _, name := range []string{"a", "b", "c"} {
		s, err := m.l.ByName(ctx, m.account, name)
		if owner, taken := m.claims[name]; taken != (err == nil) || taken && s.ID != owner {
			rt.Fatalf("%q should be %q's, is %q's: %v", name, owner, s.ID, err)
		}
	}
	all := must(m.l.List(ctx, ledger.Filter{Account: m.account}))(m.t)
	if len(all) != len(m.rows) {
		rt.Fatalf("%d rows instead of %d", len(all), len(m.rows))
	}
	for _, got := range all {
		want := m.rows[got.ID]
		if got.State != want.State || got.Fence != want.Fence || got.Generation != want.Generation || got.Reason != want.Reason {
			rt.Fatalf("have %+v, want %+v", got, want)
		}
	}
	if m.last != nil {
		m.metered(rt, m.rows[m.lastRow.ID])
	}
}

// metered checks that a live sandbox has one open meter, and an ended one has none.
func (m *model) metered(rt *rapid.T, s ledger.Sandbox) {
	open := 0
	for _, meter := range must(m.l.Meters(context.Background(), s.ID))(m.t) {
		if meter.Open() {
			open++
		}
	}
	if open > 1 || lifecycle.Usable(s.State) && open != 1 || lifecycle.Terminal(s.State) && open != 0 {
		rt.Fatalf("%s is %s with %d open meters", s.ID, s.State, open)
	}
}
