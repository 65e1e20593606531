package ledgertest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
)

func processes(t *testing.T, address NewAddress) {
	startsProcesses(t)
	t.Run("sixteen open a new ledger at once", func(t *testing.T) { t.Parallel(); coldStart(t, address) })
	t.Run("killed while it is begun", func(t *testing.T) { t.Parallel(); killedAtBeginning(t, address) })
	t.Run("several compete for the same names", func(t *testing.T) { t.Parallel(); compete(t, address) })
	t.Run("killed at every step", func(t *testing.T) { t.Parallel(); killedAtSteps(t, address) })
	t.Run("killed at any time", func(t *testing.T) { t.Parallel(); killedAtRandom(t, address) })
}

// crowd runs children at once and returns the output of each.
func crowd(t *testing.T, cmds []*exec.Cmd) []string {
	t.Helper()
	outs, errs := make([]bytes.Buffer, len(cmds)), make([]bytes.Buffer, len(cmds))
	for i, cmd := range cmds {
		cmd.Stdout, cmd.Stderr = &outs[i], &errs[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	said := make([]string, len(cmds))
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, &errs[i])
		}
		said[i] = outs[i].String()
	}
	return said
}

func coldStart(t *testing.T, address NewAddress) {
	at := address(t)
	var cmds []*exec.Cmd
	for i := range 16 {
		cmds = append(cmds, child(t, "live", at, i, 1, ""))
	}
	said := crowd(t, cmds)
	id, _, _ := strings.Cut(said[0], "\n")
	for i, out := range said {
		if !strings.HasPrefix(out, id+"\n") || len(acknowledged(out)) != 6 {
			t.Errorf("process %d said %q, process 0 %q", i, out, id)
		}
	}
	l := open(t, at, sqlstore.Options{})
	if "ledger "+l.ID() != id {
		t.Errorf("the ledger is %s", l.ID())
	}
	if all := must(l.List(context.Background(), ledger.Filter{}))(t); len(all) != 16 {
		t.Errorf("%d sandboxes", len(all))
	}
	verified(t, l)
}

// killedAtBeginning kills processes that create a ledger, one at each statement in turn. Each leaves the place to the
// next.
func killedAtBeginning(t *testing.T, address NewAddress) {
	at := address(t)
	for nth := 1; ; nth++ {
		cmd := child(t, "live", at, nth, 1, fmt.Sprintf("ledger.begin@%d:kill", nth))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.Exited()) {
			t.Fatalf("killed at statement %d before: %v: %s", nth-1, err, &stderr)
		}
		if len(out) > 0 { // it has begun
			if nth < 5 {
				t.Errorf("only %d were killed", nth-1)
			}
			break
		}
	}
	l := open(t, at, sqlstore.Options{})
	settle(t, l)
	verified(t, l)
}

func compete(t *testing.T, address NewAddress) {
	at := address(t)
	var cmds []*exec.Cmd
	for i := range 4 {
		cmds = append(cmds, child(t, "compete", at, i, 30, ""))
	}
	var keys []string
	for _, out := range crowd(t, cmds) {
		keys = append(keys, acknowledged(out)...)
	}
	l := open(t, at, sqlstore.Options{})
	nothingLost(t, l, keys)
	verified(t, l)
	if open := must(l.OpenIntents(context.Background(), ledger.IntentFilter{}))(t); len(open) != 0 {
		t.Errorf("operations are open and nobody was killed: %+v", open)
	}
}

// nothingLost finds each acknowledged key exactly once in the chain.
func nothingLost(t *testing.T, l *ledger.Ledger, keys []string) {
	t.Helper()
	times := map[string]int{}
	for _, e := range must(l.Events(context.Background(), "acme", 1, 0))(t) {
		times[e.Operation]++
	}
	if len(keys) == 0 {
		t.Error("nothing was acknowledged: the test proves nothing")
	}
	for _, k := range keys {
		if times[k] != 1 {
			t.Errorf("%s was acknowledged and is recorded %d times", k, times[k])
		}
	}
}

// settle ends what dead processes left, like recovery.
func settle(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	w := &worker{ctx: context.Background(), l: l, holder: holderOf(t, l), silent: true}
	// Where processes cannot see each other, a dead one counts as alive until its lease ends.
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		for _, s := range must(l.List(w.ctx, ledger.Filter{Live: true}))(t) {
			if err := w.bury(s); err != nil {
				t.Fatalf("settling %s: %v", s.ID, err)
			}
			w.n++
		}
		if left := must(l.List(w.ctx, ledger.Filter{Live: true}))(t); len(left) == 0 || time.Since(begun) > 5*testLease {
			break
		}
	}
	if left := must(l.List(w.ctx, ledger.Filter{Live: true}))(t); len(left) != 0 {
		t.Fatalf("left after settling: %+v", left)
	}
	if left := must(l.OpenIntents(w.ctx, ledger.IntentFilter{}))(t); len(left) != 0 {
		t.Fatalf("open after settling: %+v", left)
	}
}

// funded gives lives credit, and budgets that they do not reach.
func funded(t testing.TB, l *ledger.Ledger) {
	t.Helper()
	granted(t, l, 1000*dollar)
	for _, b := range []ledger.Budget{{Account: "acme", Name: "month", Period: "month", Hard: true}, {Account: Account, Name: "all"}} {
		b.Currency, b.Limit = "USD", 1000*dollar
		must(l.PutBudget(context.Background(), b))(t)
	}
}

// nothingHeld requires that all is settled: nothing is held for what has ended, and charges equal what is paid and owed.
func nothingHeld(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	ctx := context.Background()
	w, revenue, owed := balance(t, l, ledger.AccountWallet), balance(t, l, bank.AccountRevenue), balance(t, l, ledger.AccountReceivable)
	var charged int64
	for _, s := range must(l.List(ctx, ledger.Filter{}))(t) {
		for _, c := range must(l.Charges(ctx, s.ID))(t) {
			if c.Memo == "" {
				charged += c.Amount
			}
		}
	}
	if charged == 0 {
		t.Error("nothing was charged: the test proves nothing")
	}
	if w.DebitsPending != 0 || revenue.CreditsPending != 0 || revenue.CreditsPosted != charged || w.DebitsPosted+owed.Owed() != charged {
		t.Errorf("%d were charged; wallet %+v, revenue %+v, receivable %+v", charged, w, revenue, owed)
	}
	for _, b := range must(l.Budgets(ctx, "acme"))(t) {
		if b.Reserved != 0 || b.Spent != charged {
			t.Errorf("%d were charged: %+v", charged, b)
		}
	}
}

func killedAtSteps(t *testing.T, address NewAddress) {
	at := address(t)
	l := open(t, at, sqlstore.Options{})
	funded(t, l)
	kills := 0
	for _, point := range failpointtest.Names("ledger.") {
		for nth := 1; nth <= 5; nth++ {
			cmd := child(t, "live", at, kills, 1, fmt.Sprintf("%s@%d:kill", point, nth))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			var exit *exec.ExitError
			if err != nil && (!errors.As(err, &exit) || exit.Exited()) {
				t.Fatalf("%s, time %d: %v: %s", point, nth, err, &stderr)
			}
			if keys := acknowledged(string(out)); len(keys) > 0 {
				nothingLost(t, l, keys)
			}
			verified(t, l)
			if err == nil {
				break // the life passes here less often
			}
			kills++
		}
	}
	if kills < 20 {
		t.Errorf("only %d processes were killed", kills)
	}
	settle(t, l)
	verified(t, l)
	nothingHeld(t, l)
}

func killedAtRandom(t *testing.T, address NewAddress) {
	const kills = 40
	at := address(t)
	l := open(t, at, sqlstore.Options{})
	funded(t, l)
	var mu sync.Mutex
	var keys []string
	var wg sync.WaitGroup
	for lane := range 4 {
		wg.Go(func() {
			for k := range kills / 4 {
				out, err := killSoon(child(t, "compete", at, lane*1000+k, 1_000_000, ""))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				keys = append(keys, acknowledged(out)...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d processes were killed, %d changes acknowledged", kills, len(keys))
	nothingLost(t, l, keys)
	verified(t, l)
	settle(t, l)
	verified(t, l)
	nothingHeld(t, l)
}

// killSoon starts cmd, lets it acknowledge a few changes, kills it during the next ones, and returns its whole output.
func killSoon(cmd *exec.Cmd) (said string, err error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	out := bufio.NewReader(pipe)
	for range 1 + rand.IntN(8) { // the first line is the ledger's name
		line, err := out.ReadString('\n')
		said += line
		if err != nil {
			break
		}
	}
	time.Sleep(time.Duration(rand.IntN(10_000)) * time.Microsecond)
	_ = cmd.Process.Kill()
	rest, err := io.ReadAll(out)
	said += string(rest)
	var exit *exec.ExitError
	if werr := cmd.Wait(); !errors.As(werr, &exit) || exit.Exited() {
		return said, fmt.Errorf("a process ended by itself: %w: %s", werr, &stderr)
	}
	return said, err
}
