package ledgertest

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// till is what plain arithmetic says of a wallet and a hard budget.
type till struct {
	t      *testing.T
	l      ledger.Ledger
	holder ledger.HolderID
	alive  []ledger.Sandbox
	held   map[extensions.ID]int64

	granted, reserved, posted, owed, limit, spent int64
}

// moneyInvariants runs random lives that cost something.
func moneyInvariants(t *testing.T, address NewAddress) {
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		l := must(ledger.Open(ctx, address(t), ledger.Options{Lease: testLease}))(t)
		defer func() { _ = l.Close() }()
		m := &till{t: t, l: l, holder: holderOf(t, l), held: map[extensions.ID]int64{}, limit: rapid.Int64Range(0, 300).Draw(rt, "limit")}
		must(l.PutBudget(ctx, ledger.Budget{Account: "acme", Name: "all", Currency: "USD", Limit: m.limit, Hard: true}))(t)
		rt.Repeat(map[string]func(*rapid.T){"grant": m.grant, "begin": m.begin, "extend": m.extend, "end": m.end, "": m.adds})
		if r := must(l.Verify(ctx))(t); !r.OK() {
			rt.Fatalf("not consistent: %q", r.Problems)
		}
	})
}

func (m *till) free() int64 { return m.granted - m.posted + m.owed - m.reserved }

func (m *till) room() int64 { return min(m.free(), m.limit-m.reserved-m.spent) }

func (m *till) grant(rt *rapid.T) {
	n := rapid.Int64Range(1, 100).Draw(rt, "grant")
	granted(m.t, m.l, n)
	m.granted += n
}

// expect checks a reservation that was tried.
func (m *till) expect(rt *rapid.T, id extensions.ID, n int64, err error) bool {
	var e *ledger.Insufficient
	if fits := n <= m.room(); fits != (err == nil) || !fits && (!errors.As(err, &e) || e.Need != n || e.Available != max(0, m.room())) {
		rt.Fatalf("%d of %d: %v", n, m.room(), err)
	}
	if err == nil {
		m.held[id] += n
		m.reserved += n
	}
	return err == nil
}

func (m *till) begin(rt *rapid.T) {
	n := rapid.Int64Range(1, 80).Draw(rt, "reserve")
	b := want(newID(m.t), m.holder, string(newID(m.t)))
	b.Reserve = &ledger.Reserve{Currency: "USD", Amount: n, Wallet: true}
	s, err := m.l.Begin(context.Background(), b)
	if !m.expect(rt, b.ID, n, err) {
		return
	}
	s = must(m.l.Apply(context.Background(), provisioning(s)))(m.t)
	m.alive = append(m.alive, must(m.l.Apply(context.Background(), ready(s)))(m.t))
}

func (m *till) pick(rt *rapid.T) int {
	if len(m.alive) == 0 {
		rt.Skip("nothing lives")
	}
	return rapid.IntRange(0, len(m.alive)-1).Draw(rt, "which")
}

func (m *till) extend(rt *rapid.T) {
	s := m.alive[m.pick(rt)]
	n := rapid.Int64Range(1, 50).Draw(rt, "more")
	_, err := m.l.Apply(context.Background(), ledger.Change{ID: s.ID, Key: string(newID(m.t)), Reserve: &ledger.Reserve{Currency: "USD", Amount: n, Wallet: true}})
	m.expect(rt, s.ID, n, err)
}

func (m *till) end(rt *rapid.T) {
	i := m.pick(rt)
	s := m.alive[i]
	used := rapid.Int64Range(0, 200).Draw(rt, "used")
	s = must(m.l.Apply(context.Background(), destroying(s, m.holder)))(m.t)
	c := destroyed(s)
	c.Meter.Close.Booked = booked(ledger.Charge{Segment: 1, Component: "wall", Amount: used, Currency: "USD", Confidence: "exact"})
	if s = must(m.l.Apply(context.Background(), c))(m.t); s.State != lifecycle.Destroyed {
		rt.Fatal(s.State)
	}
	m.alive = append(m.alive[:i], m.alive[i+1:]...)
	m.reserved -= m.held[s.ID]
	within := min(used, m.held[s.ID])
	m.posted += within
	m.spent += used
	over := used - within
	unpaid := over - min(over, m.free())
	m.posted += over
	m.owed += unpaid
}

// adds compares the books with the arithmetic.
func (m *till) adds(rt *rapid.T) {
	w := balance(m.t, m.l, ledger.AccountWallet)
	if w.Available() != m.free() || w.Available() < 0 || w.DebitsPending != m.reserved {
		rt.Fatalf("the wallet is %+v, and should have %d free, %d reserved", w, m.free(), m.reserved)
	}
	if r, o := balance(m.t, m.l, ledger.AccountRevenue), balance(m.t, m.l, ledger.AccountReceivable); r.CreditsPosted != m.posted || o.DebitsPosted != m.owed {
		rt.Fatalf("revenue %+v, receivable %+v; should be %d, %d", r, o, m.posted, m.owed)
	}
	b := must(m.l.Budgets(context.Background(), "acme"))(m.t)[0]
	if b.Reserved != m.reserved || b.Spent != m.spent {
		rt.Fatalf("the budget is %+v; should be %d reserved, %d spent", b, m.reserved, m.spent)
	}
}
