package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// bookRuns is the number of runs of the state machine in a test. They share ledgers, each in its own org.
const bookRuns = 25

// bookkeeper runs random operations with money on one ledger, or on several that must then agree, and fails at any
// statement of any of them.
type bookkeeper struct {
	bills   Bills
	t       *testing.T
	ledgers []*ledger.Ledger
	holders []ledger.HolderID
	clock   *atomic.Int64 // microseconds; the clock of all ledgers
	org     string
	plain   *plainBooks
	read    []*journal
	alive   []*stay
	ids     *rand.Rand
	n       int // of keys
}

// stay is a live sandbox as the machine knows it.
type stay struct {
	rows            []ledger.Sandbox // in each ledger
	payer, currency string
	began           bool // an attempt of it costs, and is not over
}

func (f *stay) row() ledger.Sandbox { return f.rows[0] }

// books is the state machine on one ledger.
func books(t *testing.T, address NewAddress) { bookkeeping(t, address) }

// Twins runs the state machine on two databases at once: the same operations
// have the same outcome, the same rows and the same chain in both.
func Twins(t *testing.T, one, other NewAddress) {
	t.Helper()
	bookkeeping(t, one, other)
}

func bookkeeping(t *testing.T, addresses ...NewAddress) {
	clock := &atomic.Int64{}
	clock.Store(Start.UnixMicro())
	k := &bookkeeper{t: t, clock: clock, ids: rand.New(rand.NewPCG(1, uint64(Start.Unix())))}
	for _, address := range addresses {
		l := open(t, address(t), sqlstore.Options{Rand: same{}, Charges: k.bills.Of,
			Now: func() time.Time { return time.UnixMicro(clock.Load()) }})
		k.ledgers, k.holders = append(k.ledgers, l), append(k.holders, holderOf(t, l))
	}
	runs, failing := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; runs > bookRuns && !failing {
			return
		}
		failing = true
		k.org, k.plain, k.alive, k.read = fmt.Sprint("org", runs), newPlainBooks(), nil, nil
		for range k.ledgers {
			k.read = append(k.read, newJournal())
		}
		rt.Repeat(map[string]func(*rapid.T){
			"grant": k.grant, "limit": k.limit, "begin": k.begin, "begin again": k.begin, "run": k.run, "extend": k.extend, "shorten": k.shorten,
			"pause": k.pause,
			"end":   k.end, "end one more": k.end, "refuse": k.refuse, "recreate": k.recreate, "elsewhere": k.elsewhere,
			"unreserved": k.unreserved, "give up": k.giveUp,
			"later": k.later, "": k.holds,
		})
		for _, l := range k.ledgers {
			if r := must(l.Verify(context.Background(), must(l.Head(context.Background(), k.org))(t)))(t); len(r.Problems) > 0 {
				rt.Fatalf("not consistent: %q", r.Problems)
			}
		}
		failing = false
	})
}

func (k *bookkeeper) now() time.Time { return time.UnixMicro(k.clock.Load()).UTC() }

func (k *bookkeeper) key(what string) string {
	k.n++
	return fmt.Sprintf("%s/%s/%d", k.org, what, k.n)
}

func (k *bookkeeper) id() extensions.ID {
	id, err := extensions.NewID(randomBytes{k.ids})
	if err != nil {
		k.t.Fatal(err)
	}
	return id
}

type randomBytes struct{ *rand.Rand }

func (r randomBytes) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return len(b), nil
}

// do carries out an operation in every ledger: first with a failure at some statement, which leaves nothing unless it
// comes after the commit; then without; then again, which changes nothing.
func (k *bookkeeper) do(rt *rapid.T, op func(ctx context.Context, i int) error) error {
	k.clock.Add(1000)
	point := rapid.SampledFrom(failpointtest.Names("ledger.")).Draw(rt, "fails at")
	nth := rapid.IntRange(1, 3).Draw(rt, "time")
	var first error
	for i, l := range k.ledgers {
		ctx := context.Background()
		before := must(l.Head(ctx, k.org))(k.t)
		hits := 0
		failing := failpointtest.Inject(ctx, point, func() error {
			if hits++; hits == nth {
				return failpointtest.ErrInjected
			}
			return nil
		})
		err := op(failing, i)
		if after := must(l.Head(ctx, k.org))(k.t); hits >= nth && (err == nil || after != before && point != "ledger.committed") {
			rt.Fatalf("failed at %s, time %d: %v; the chain went from %d to %d", point, nth, err, before.Seq, after.Seq)
		}
		err = op(ctx, i)
		done := must(l.Head(ctx, k.org))(k.t)
		if again := op(ctx, i); (err == nil) != (again == nil) || must(l.Head(ctx, k.org))(k.t) != done {
			rt.Fatalf("repeated: %v, then %v", err, again)
		}
		if i == 0 {
			first = err
		} else if fmt.Sprint(err) != fmt.Sprint(first) {
			rt.Fatalf("one ledger says %v, another %v", first, err)
		}
	}
	return first
}

// change applies a step to a life.
func (k *bookkeeper) change(rt *rapid.T, f *stay, what string, c func(row ledger.Sandbox, i int) ledger.Change) error {
	key := k.key(what)
	return k.do(rt, func(ctx context.Context, i int) error {
		ch := c(f.rows[i], i)
		ch.ID, ch.Key = f.rows[i].ID, key
		row, err := k.ledgers[i].Apply(ctx, ch)
		if err == nil {
			f.rows[i].State, f.rows[i].Fence, f.rows[i].Generation = row.State, row.Fence, row.Generation
		}
		return err
	})
}

func (k *bookkeeper) must(rt *rapid.T, err error) {
	if err != nil {
		rt.Fatal(err)
	}
}

// reserved checks the outcome of a reservation against the arithmetic: a refusal requires a limit without enough room,
// and names the one that lacks the most.
func (k *bookkeeper) reserved(rt *rapid.T, account, payer string, r *ledger.Reserve, err error) bool {
	var short *limit
	for _, x := range k.plain.limits(account, payer, r.Currency, r.Amount, r.Own.Amount, k.now()) {
		if x.need > x.room && (short == nil || x.need-x.room > short.need-short.room) {
			short = &x
		}
	}
	fits := r.Amount == 0 || short == nil
	var e *ledger.Insufficient
	if fits != (err == nil) || !fits && (!errors.As(err, &e) || e.Need != short.need || e.Available != max(0, short.room)) {
		rt.Fatalf("%s of %s needs %+v and lacks %+v: %v", payer, account, r, short, err)
	}
	return fits
}

// holds compares everything with the arithmetic, and reads the new events.
func (k *bookkeeper) holds(rt *rapid.T) {
	ctx := context.Background()
	var heads []ledger.Head
	for i, l := range k.ledgers {
		for _, e := range must(l.Events(ctx, k.org, k.read[i].seq+1, 0))(k.t) {
			if wrong := k.read[i].read(e); wrong != "" {
				rt.Fatal(wrong)
			}
		}
		heads = append(heads, must(l.Head(ctx, k.org))(k.t))
		balances := must(l.Balances(ctx, k.org))(k.t)
		if wrong := k.plain.differs(k.org, balances, must(l.Budgets(ctx, k.org))(k.t), k.now()); wrong != "" {
			rt.Fatal(wrong)
		}
		if wrong := owesAndHas(balances); wrong != "" {
			rt.Fatal(wrong)
		}
		for _, b := range balances {
			told := *k.read[i].of(b.ID)
			told.Org, told.Kind, told.Currency = b.Org, b.Kind, b.Currency
			if told != b {
				rt.Fatalf("account %+v is not the fold of its transfers: %+v", b, told)
			}
		}
		for _, f := range k.alive {
			k.one(rt, l, f.rows[i])
		}
	}
	if len(slices.Compact(heads)) != 1 {
		rt.Fatalf("the same operations gave several chains: %+v", heads)
	}
}

// one checks a live sandbox: its reservations equal the books', it has one meter, and segments fill the meter's life.
func (k *bookkeeper) one(rt *rapid.T, l *ledger.Ledger, s ledger.Sandbox) {
	ctx := context.Background()
	var sum, want int64
	for _, x := range must(l.Held(ctx, s.ID))(k.t) {
		sum += x.Amount
	}
	for _, p := range k.plain.held[s.ID] {
		want += p.amount
	}
	if sum != want {
		rt.Fatalf("%d are held for %s, should be %d", sum, s.ID, want)
	}
	open := 0
	for _, m := range must(l.Meters(ctx, s.ID))(k.t) {
		at := m.OpenedAt
		for _, seg := range m.Segments {
			if !seg.StartedAt.Equal(at) {
				rt.Fatalf("the segments of %s are not contiguous: %+v", m.ID, m.Segments)
			}
			at = seg.EndedAt
		}
		if !at.Equal(m.ClosedAt) {
			rt.Fatalf("the segments of %s do not fill its life: %+v", m.ID, m)
		}
		if m.Open() {
			open++
		}
	}
	trying := s.State == lifecycle.Provisioning // what an attempt made costs before it is ready
	if usable := lifecycle.Usable(s.State); usable && open != 1 || !usable && open > 0 && !trying || open > 1 {
		rt.Fatalf("%s is %s with %d open meters", s.ID, s.State, open)
	}
}
