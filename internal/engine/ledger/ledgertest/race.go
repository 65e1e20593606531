package ledgertest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// lastCredit lets four processes with fifty goroutines each compete for credit that suffices for some: exactly that many
// succeed.
func lastCredit(t *testing.T, address NewAddress, limit string) {
	const enough = 37
	at := address(t)
	l := open(t, at, sqlstore.Options{})
	credit := int64(enough*dollar + dollar/2)
	if strings.HasPrefix(limit, "wallet") {
		granted(t, l, credit)
	} else {
		granted(t, l, 1000*dollar)
		must(l.PutBudget(context.Background(), ledger.Budget{Account: Account, Name: "all", Currency: "USD", Limit: credit, Hard: true}))(t)
	}
	won, lost := spendTogether(t, at, "spend")
	if won != enough || len(lost) != 200-enough {
		t.Errorf("%d succeeded and %d were refused, want %d of 200", won, len(lost), enough)
	}
	fits := "needs 1.00 USD for a ttl of 2h, 0.50 available (limit: " + limit + "); a ttl of at most 1h fits"
	for _, r := range lost {
		if r.Text != fits {
			t.Errorf("refused with %q, want %q", r.Text, fits)
		}
	}
	if all := must(l.List(context.Background(), ledger.Filter{}))(t); len(all) != enough {
		t.Errorf("%d are recorded", len(all))
	}
	verified(t, l)
}

func spendTogether(t *testing.T, at, role string) (won int, lost []refused) {
	t.Helper()
	type process struct {
		in  io.WriteCloser
		out *bufio.Reader
	}
	var all []process
	for i := range 4 {
		cmd := child(t, role, at, i, 50, "")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("a process failed: %v", err)
			}
		})
		p := process{in, bufio.NewReader(out)}
		if line, err := p.out.ReadString('\n'); err != nil || !strings.HasPrefix(line, "ledger") {
			t.Fatalf("a process is not ready: %q, %v", line, err)
		}
		all = append(all, p)
	}
	for _, p := range all {
		_ = p.in.Close() // the starting shot
	}
	for _, p := range all {
		text, err := io.ReadAll(p.out)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "refused "); ok {
				var r refused
				if err := json.Unmarshal([]byte(text), &r); err != nil {
					t.Fatal(err)
				}
				lost = append(lost, r)
			} else if strings.HasPrefix(line, "key ") {
				won++
			}
		}
	}
	return won, lost
}

// refused is a process's report of a refusal.
type refused struct {
	Account, Limit  string
	Need, Available int64
	Fits            time.Duration
	Text            string
}

// spend begins count sandboxes at once, as soon as its standard input ends: of one length, or mixed, of several lengths
// in two workspaces.
func (w *worker) spend(count int, mixed bool) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, count)
	for i := range count {
		b := want("", w.holder, fmt.Sprint(w.seed, "-", i))
		b.Reserve = cost()
		if mixed {
			hours := int64(1 + i%4)
			b.Account = []string{Account, "acme/api"}[i/4%2]
			b.Reserve.Amount, b.Reserve.TTL = hours*b.Reserve.Hourly, time.Duration(hours)*time.Hour
		}
		wg.Go(func() {
			if b.ID, errs[i] = extensions.NewID(nil); errs[i] != nil {
				return
			}
			b.Key = string(b.ID) + "/create"
			_, err := w.l.Begin(w.ctx, b)
			var e *ledger.Insufficient
			switch {
			case err == nil:
				w.said("key", b.Key)
			case errors.As(err, &e):
				raw, err := json.Marshal(refused{b.Account, e.Limit, e.Need, e.Available, e.Fits, e.Error()})
				errs[i] = err
				w.said("refused", string(raw))
			default:
				errs[i] = err
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// mixedCredit is lastCredit with sandboxes of several lengths in two workspaces, below a wallet and a budget: no limit is
// exceeded, and every refused sandbox needed more than was left.
func mixedCredit(t *testing.T, address NewAddress) {
	ctx := context.Background()
	at := address(t)
	l := open(t, at, sqlstore.Options{})
	granted(t, l, 60*dollar)
	must(l.PutBudget(ctx, ledger.Budget{Account: Account, Name: "all", Currency: "USD", Limit: 20*dollar + dollar/4, Hard: true}))(t)
	won, lost := spendTogether(t, at, "spend-mixed")
	if won+len(lost) != 200 || won == 0 || len(lost) == 0 {
		t.Errorf("%d and %d", won, len(lost))
	}
	budget, wallet := must(l.Budgets(ctx, "acme"))(t)[0], balance(t, l, ledger.AccountWallet)
	left := map[string]int64{"budget all of acme/web": budget.Available(), "wallet of acme": wallet.Available()}
	if budget.Available() < 0 || wallet.Available() < 0 {
		t.Errorf("a limit was passed: %+v, %+v", budget, wallet)
	}
	for _, r := range lost {
		if now, ok := left[r.Limit]; !ok || r.Need <= r.Available || r.Available < now || r.Account != Account && r.Limit != "wallet of acme" {
			t.Errorf("%+v, of %d", r, now)
		}
		if fits := time.Duration(r.Available*120/dollar) * time.Minute; r.Fits != fits { // half a dollar an hour
			t.Errorf("%+v: %s would fit", r, fits)
		}
	}
	verified(t, l)
}

// whatFits proves that the ttl offered by a refusal is the longest: it passes, and a minute more does not.
func whatFits(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	holder, runs, failing := holderOf(t, l), 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; runs > bookRuns && !failing {
			return
		}
		failing = true
		org := fmt.Sprint("org", runs)
		credit := rapid.Int64Range(1, 999_999).Draw(rt, "credit") // less than the wallet: the budget is the limit
		fixed := rapid.Int64Range(0, 1000).Draw(rt, "fixed")
		hourly := rapid.Int64Range(1, 2_000_000).Draw(rt, "hourly")
		ttl := time.Duration(rapid.Int64Range(1, 30*24*60).Draw(rt, "minutes")) * time.Minute
		must(l.Grant(ctx, ledger.Grant{Key: org + "/grant", Org: org, Currency: "USD", Amount: 1_000_000}))(t)
		account := rapid.SampledFrom([]string{org, org + "/web"}).Draw(rt, "limit")
		must(l.PutBudget(ctx, ledger.Budget{Account: account, Name: "all", Currency: "USD", Limit: credit, Hard: true}))(t)
		try := func(ttl time.Duration) error {
			id := newID(t)
			b := want(id, holder, string(id))
			b.Account = org + "/web"
			// The maximum, rounded up, in integers of any size.
			n := new(big.Int).Mul(big.NewInt(hourly), big.NewInt(int64(ttl)))
			n.Add(n, big.NewInt(int64(time.Hour)-1)).Div(n, big.NewInt(int64(time.Hour))).Add(n, big.NewInt(fixed))
			b.Reserve = &ledger.Reserve{Currency: "USD", Amount: n.Int64(), Wallet: true, Fixed: fixed, Hourly: hourly, TTL: ttl}
			_, err := l.Begin(ctx, b)
			return err
		}
		var e *ledger.Insufficient
		if err := try(ttl); err != nil {
			if !errors.As(err, &e) || e.Limit != "budget all of "+account || e.Fits >= ttl {
				rt.Fatalf("%+v, %v", e, err)
			}
			if err := try(e.Fits + time.Minute); err == nil {
				rt.Fatalf("%s was said to fit, and a minute more does", e.Fits)
			}
			if e.Fits > 0 {
				if err := try(e.Fits); err != nil {
					rt.Fatalf("%s was said to fit: %v", e.Fits, err)
				}
			}
		}
		failing = false
	})
	verified(t, l)
}
