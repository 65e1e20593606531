package ledgertest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func ceilings(t *testing.T, address NewAddress) {
	t.Run("so many in so long", func(t *testing.T) { t.Parallel(); createCeiling(t, address) })
	t.Run("so much in so long", func(t *testing.T) { t.Parallel(); spendCeiling(t, address) })
	t.Run("a look before", func(t *testing.T) { t.Parallel(); pacesAgree(t, address) })
	t.Run("processes at once", func(t *testing.T) { t.Parallel(); ceilingTogether(t, address) })
}

func refusedTooFast(t *testing.T, err error, want string) ledger.TooFast {
	t.Helper()
	var e *ledger.TooFast
	if !errors.As(err, &e) || !extensions.IsKind(err, extensions.KindExhausted) || extensions.RemedyOf(err) == "" ||
		!strings.Contains(e.Error(), want) {
		t.Fatalf("%v, want %s", err, want)
	}
	return *e
}

func createCeiling(t *testing.T, address NewAddress) {
	ctx := context.Background()
	clock := &Clock{at: Start}
	l := open(t, address(t), sqlstore.Options{Now: clock.Now})
	begin := func(account string, metered bool, cs ...ledger.Ceiling) (ledger.Sandbox, error) {
		b := want(newID(t), holderOf(t, l), string(newID(t)))
		b.Account, b.Metered, b.Ceilings = account, metered, cs
		return l.Begin(ctx, b)
	}
	web := ledger.Ceiling{Source: "policy.web", Scope: Account, Max: 2, Per: 10 * time.Minute}
	org := ledger.Ceiling{Source: "policy.acme", Scope: "acme", Max: 3, Per: time.Hour}
	billed := ledger.Ceiling{Source: "the default", Scope: Account, Max: 1, Per: time.Hour, Metered: true}
	s := must(begin(Account, false, web, org, billed))(t)
	clock.at = clock.at.Add(3 * time.Minute)
	must(begin(Account, true, web, org, billed))(t)
	_, err := begin(Account, false, web, org)
	e := refusedTooFast(t, err, "2 sandboxes were started for acme/web in the last 10m (limit: 2 per 10m of policy.web); the next is "+
		"possible at 2026-03-01T12:10:00Z, in 7m")
	var x *extensions.Error
	if !errors.As(err, &x) || x.RetryAfter < 6*time.Minute || x.RetryAfter > 7*time.Minute || e.Count != 2 {
		t.Errorf("%+v", x)
	}
	refusedTooFast(t, func() error { _, err := begin(Account, true, billed); return err }(), "of the default")
	must(begin("acme/ops", false, org))(t) // another workspace counts for the org
	other := org
	other.Scope = "acmes"
	must(begin("acmes/web", false, other))(t) // another org does not
	must(begin("acme/ops", false, other))(t)
	_, err = begin("acme/ops", false, org)
	refusedTooFast(t, err, "for acme in the last 1h (limit: 3 per 1h of policy.acme)")
	clock.at = e.Next
	must(begin(Account, false, web))(t)
	// A recreate counts as one more; a mere change does not.
	s = must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: "failed", To: "failed", Finish: &ledger.FinishIntent{Outcome: ledger.Failed},
		Ceilings: []ledger.Ceiling{org}}))(t)
	again := ledger.Change{ID: s.ID, Key: "again", To: "provisioning", NextGeneration: true, Ceilings: []ledger.Ceiling{org},
		Intent: &ledger.OpenIntent{Kind: ledger.IntentRecreate, Holder: holderOf(t, l), Metered: true}}
	_, err = l.Apply(ctx, again)
	refusedTooFast(t, err, "policy.acme")
	again.Ceilings[0].Max = 10
	must(l.Apply(ctx, again))(t)
	never := web
	never.Max = 0
	if _, err := begin(Account, false, never); !refusedTooFast(t, err, "limit: 0 per 10m").Next.IsZero() {
		t.Error("a time is told at which none may be begun")
	}
	if _, err := begin(Account, false, ledger.Ceiling{Source: "x", Scope: Account, Max: -1, Per: time.Hour}); !extensions.IsKind(err,
		extensions.KindInvalid) {
		t.Error(err)
	}
	verified(t, l)
}

func spendCeiling(t *testing.T, address NewAddress) {
	ctx := context.Background()
	clock := &Clock{at: Start}
	l := open(t, address(t), sqlstore.Options{Now: clock.Now})
	day := ledger.Ceiling{Source: "policy.acme", Scope: "acme", Currency: "USD", Max: 20 * dollar, Per: 24 * time.Hour}
	begin := func(amount int64, currency, memo string) (ledger.Sandbox, error) {
		b := want(newID(t), holderOf(t, l), string(newID(t)))
		b.Reserve = &ledger.Reserve{Currency: currency, Amount: amount, Memo: memo}
		b.Ceilings = []ledger.Ceiling{day}
		return l.Begin(ctx, b)
	}
	live := func(s ledger.Sandbox, used int64) {
		t.Helper()
		s = must(l.Apply(ctx, provisioning(s)))(t)
		s = must(l.Apply(ctx, ready(s)))(t)
		s = must(l.Apply(ctx, destroying(s, holderOf(t, l))))(t)
		must(l.Apply(ctx, charging(destroyed(s),
			ledger.Charge{Segment: 1, Component: "wall", Amount: used, Currency: "USD", Memo: "byok_memo:x"})))(t)
	}
	first := must(begin(15*dollar, "USD", ""))(t)
	second := must(begin(5*dollar, "USD", ""))(t)
	must(begin(99*dollar, "USD", ledger.AccountInfra))(t) // nobody bills places of your own
	must(begin(99*dollar, "EUR", ""))(t)
	_, err := begin(1, "USD", "")
	e := refusedTooFast(t, err, "acme has spent or set aside 20.00 in the last 24h (limit: 20.00 per 24h of policy.acme)")
	if !e.Next.IsZero() || e.Count != 20*dollar || e.Need != 1 {
		t.Errorf("%+v", e)
	}
	live(first, 9*dollar) // ended at 13:00
	_, err = begin(7*dollar, "USD", "")
	if e := refusedTooFast(t, err, "the next is possible at 2026-03-02T13:00:00Z"); e.Count != 14*dollar {
		t.Errorf("%+v", e)
	}
	must(begin(6*dollar, "USD", ""))(t)
	more := ledger.Change{ID: second.ID, Key: "more", Ceilings: []ledger.Ceiling{day},
		Reserve: &ledger.Reserve{Currency: "USD", Amount: 6 * dollar, Total: true}}
	_, err = l.Apply(ctx, more)
	refusedTooFast(t, err, "needs 1.00 USD, and acme has spent or set aside 20.00")
	clock.at = Start.Add(25*time.Hour + time.Second)
	must(l.Apply(ctx, more))(t)
	verified(t, l)
}

// pacesAgree: a pace shows the same refusal as a begin right after it.
func pacesAgree(t *testing.T, address NewAddress) {
	ctx := context.Background()
	clock := &Clock{at: Start}
	l := open(t, address(t), sqlstore.Options{Now: clock.Now})
	cs := []ledger.Ceiling{
		{Source: "web", Scope: Account, Max: 5, Per: 10 * time.Minute},
		{Source: "org", Scope: "acme", Max: 7, Per: time.Hour, Metered: true},
		{Source: "usd", Scope: "acme", Currency: "USD", Max: 20, Per: 24 * time.Hour},
		{Source: "euro", Scope: Account, Currency: "EUR", Max: 3, Per: time.Hour},
	}
	refused := 0
	for i := range 40 {
		clock.at = clock.at.Add(time.Duration(i%7) * time.Minute)
		r := &ledger.Reserve{Currency: []string{"USD", "EUR"}[i%3/2], Amount: int64(i % 5), Memo: []string{"", ledger.AccountInfra}[i%4/3]}
		head := must(l.Head(ctx, "acme"))(t)
		paces := must(l.Paces(ctx, cs, r))(t)
		if len(paces) != len(cs) || must(l.Head(ctx, "acme"))(t) != head {
			t.Fatalf("%+v", paces)
		}
		b := want(newID(t), holderOf(t, l), string(newID(t)))
		b.Metered, b.Ceilings, b.Reserve = i%2 == 0, cs, r
		_, err := l.Begin(ctx, b)
		var told *ledger.TooFast
		if err != nil && !errors.As(err, &told) {
			t.Fatal(err)
		}
		for _, p := range paces {
			if p.Fits() {
				continue
			}
			if refused++; told == nil || told.Ceiling != p.Ceiling || told.Count != p.Count || told.Need != p.Need || !told.Next.Equal(p.Next) {
				t.Fatalf("look %d said %+v, the begin %v", i, p, err)
			}
			told = &ledger.TooFast{} // only the first refuses
			break
		}
		if told != nil && told.Source != "" {
			t.Fatalf("look %d saw room everywhere, the begin %v", i, err)
		}
	}
	if refused < 5 || refused > 35 {
		t.Errorf("%d of 40 were refused: the test proves little", refused)
	}
	least := must(l.Paces(ctx, cs[2:3], nil))(t)[0]
	if least.Need != 1 {
		t.Errorf("%+v", least)
	}
	if _, err := l.Paces(ctx, []ledger.Ceiling{{Source: "x", Scope: Account, Max: -1, Per: time.Hour}}, nil); !extensions.IsKind(err,
		extensions.KindInvalid) {
		t.Errorf("below zero: %v", err)
	}
	verified(t, l)
}

// ceilingTogether lets four processes begin fifty sandboxes each: no more than the ceiling allows succeed.
func ceilingTogether(t *testing.T, address NewAddress) {
	const most = 23
	at := address(t)
	l := open(t, at, sqlstore.Options{})
	var procs []*bufio.Reader
	var starts []io.Closer
	for i := range 4 {
		cmd := child(t, "rush", at, i, 50, "")
		cmd.Stderr = os.Stderr
		in := must(cmd.StdinPipe())(t)
		out := must(cmd.StdoutPipe())(t)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("a process failed: %v", err)
			}
		})
		r := bufio.NewReader(out)
		if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "ledger") {
			t.Fatalf("a process is not ready: %q, %v", line, err)
		}
		procs, starts = append(procs, r), append(starts, in)
	}
	for _, in := range starts {
		_ = in.Close() // the starting shot
	}
	won, lost := 0, 0
	for _, r := range procs {
		text := must(io.ReadAll(r))(t)
		won += strings.Count(string(text), "key ")
		lost += strings.Count(string(text), "refused 23 sandboxes were started for acme/web in the last 1h (limit: 23 per 1h of policy.acme); "+
			"the next is possible at ")
	}
	if all := must(l.List(context.Background(), ledger.Filter{}))(t); won != most || lost != 200-most || len(all) != most {
		t.Errorf("%d succeeded, %d were refused, %d are recorded; want %d of 200", won, lost, len(all), most)
	}
	verified(t, l)
}

// rush begins count sandboxes at once below a ceiling, as soon as its standard input ends.
func (w *worker) rush(count int) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, count)
	for i := range count {
		wg.Go(func() {
			id, err := extensions.NewID(nil)
			if err != nil {
				errs[i] = err
				return
			}
			b := want(id, w.holder, string(id))
			b.Metered, b.Ceilings = true, []ledger.Ceiling{{Source: "policy.acme", Scope: Account, Max: 23, Per: time.Hour, Metered: true}}
			_, err = w.l.Begin(w.ctx, b)
			var e *ledger.TooFast
			switch {
			case err == nil:
				w.said("key", b.Key)
			case errors.As(err, &e):
				w.said("refused", e.Error())
			default:
				errs[i] = err
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
