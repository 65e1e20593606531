package ledgertest

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// With these, the test binary is one of several programs that use a ledger at the same time.
const (
	envRole    = "LEDGERTEST_ROLE"
	envAddress = "LEDGERTEST_ADDRESS"
	envSeed    = "LEDGERTEST_SEED"
	envCount   = "LEDGERTEST_COUNT"
)

// Main runs the tests, or the role of a child process, and ends what the tests share. TestMain calls it.
func Main(m *testing.M, end ...func() error) {
	failpointtest.Arm()
	if role := os.Getenv(envRole); role != "" {
		if err := playRole(role); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if exttest.Detector { // each step is many times slower, and draws add no other interleaving
		if err := flag.Set("rapid.checks", "10"); err != nil { // the command line still decides
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	for _, f := range end {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func startsProcesses(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts no other processes")
	}
}

// child prepares a process with the role; failpoints as in failpointtest.Env.
func child(t testing.TB, role, address string, seed, count int, failpoints string) *exec.Cmd {
	t.Helper()
	startsProcesses(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self) //nolint:noctx // the test chooses its end
	cmd.Env = append(os.Environ(), envRole+"="+role, envAddress+"="+address, envSeed+"="+strconv.Itoa(seed), envCount+"="+strconv.Itoa(count),
		failpointtest.Env+"="+failpoints)
	return cmd
}

// worker is a child's view of the ledger.
type worker struct {
	ctx    context.Context
	l      *ledger.Ledger
	holder ledger.HolderID
	rnd    *rand.Rand
	seed   int
	n      int
	silent bool
}

func playRole(role string) error {
	seed, _ := strconv.Atoi(os.Getenv(envSeed))
	count, _ := strconv.Atoi(os.Getenv(envCount))
	ctx := context.Background()
	l, err := sqlstore.Open(ctx, os.Getenv(envAddress), sqlstore.Options{Lease: testLease})
	if err != nil {
		return err
	}
	w := &worker{ctx: ctx, l: l, rnd: rand.New(rand.NewPCG(uint64(seed), 1)), seed: seed}
	if w.holder, err = l.Holder(ctx); err != nil {
		return err
	}
	w.said("ledger", l.ID())
	if role == "bench" || role == "bench-lives" {
		return errors.Join(w.bench(count, role == "bench-lives"), l.Close())
	}
	if role == "rush" {
		return errors.Join(w.rush(count), l.Close())
	}
	if role == "spend" || role == "spend-mixed" {
		return errors.Join(w.spend(count, role != "spend"), l.Close())
	}
	for range count {
		switch role {
		case "live":
			err = w.live(fmt.Sprint("own-", seed, "-", w.n))
		case "compete":
			err = w.live(fmt.Sprint("name-", w.rnd.IntN(3)))
		default:
			err = fmt.Errorf("no such role")
		}
		if err != nil {
			return err
		}
		w.n++
	}
	return l.Close()
}

// said reports a done step to the parent: from then on it must never be lost.
func (w *worker) said(what, v string) {
	if !w.silent {
		_, _ = os.Stdout.WriteString(what + " " + v + "\n")
	}
}

// ownCredit is the reservation of a life: less than its hour costs, so that the rest is overage.
func ownCredit(n int64) *ledger.Reserve {
	return &ledger.Reserve{Currency: "USD", Amount: n, IfGranted: true}
}

// live takes a sandbox from Begin to its end, unless its name is taken. Then it buries the name's holder if that
// holder's process is dead.
func (w *worker) live(name string) error {
	id, err := extensions.NewID(nil)
	if err != nil {
		return err
	}
	b := want(id, w.holder, name)
	b.Reserve = ownCredit(5000)
	s, err := w.l.Begin(w.ctx, b)
	var taken *ledger.NameTaken
	if errors.As(err, &taken) {
		if err := w.bury(taken.Existing); err != nil {
			return err
		}
		// Until the lease of a dead holder ends, asking again at once would only keep a processor busy.
		time.Sleep(time.Duration(w.rnd.IntN(100)) * time.Millisecond)
		return nil
	}
	if err != nil {
		return err
	}
	w.said("key", b.Key)
	steps := []func() ledger.Change{
		func() ledger.Change { return provisioning(s) },
		func() ledger.Change { return ready(s) },
		func() ledger.Change {
			return ledger.Change{ID: s.ID, Key: step(s, "more"), Expect: ledger.Expect{Fence: s.Fence}, Reserve: ownCredit(3000)}
		},
		func() ledger.Change { return destroying(s, w.holder) },
		func() ledger.Change { return destroyed(s) },
	}
	for _, next := range steps {
		c := next()
		if s, err = w.l.Apply(w.ctx, c); err != nil {
			return w.lost(err)
		}
		w.said("key", c.Key)
	}
	return nil
}

// bury ends a sandbox that a dead process left. It leaves a live process's alone.
func (w *worker) bury(s ledger.Sandbox) error {
	c := destroying(s, w.holder)
	c.Key, c.Intent.Supersede = fmt.Sprintf("%s/bury/%s/%d", s.ID, w.holder, w.n), false
	if s.State == lifecycle.Destroying {
		c.To = ""
	}
	s, err := w.l.Apply(w.ctx, c)
	if err != nil {
		return w.lost(err)
	}
	w.said("key", c.Key)
	end := destroyed(s)
	if _, err := w.l.Apply(w.ctx, end); err != nil {
		return w.lost(err)
	}
	w.said("key", end.Key)
	return nil
}

// lost ignores the errors of losing to another process or meeting a busy one: the competition expects them.
func (w *worker) lost(err error) error {
	if extensions.IsKind(err, extensions.KindConflict) {
		return nil
	}
	return err
}

// acknowledged lists the keys that a child reported as done.
func acknowledged(out string) []string {
	var keys []string
	lines := bufio.NewScanner(strings.NewReader(out))
	for lines.Scan() {
		if k, ok := strings.CutPrefix(lines.Text(), "key "); ok {
			keys = append(keys, k)
		}
	}
	return keys
}
