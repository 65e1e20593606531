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

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The test binary started with these is one of several programs that use a
// ledger at the same time.
const (
	envRole    = "LEDGERTEST_ROLE"
	envAddress = "LEDGERTEST_ADDRESS"
	envSeed    = "LEDGERTEST_SEED"
	envCount   = "LEDGERTEST_COUNT"
)

// Main runs the tests, or the part of a child process, and ends what the tests
// share. TestMain calls it.
func Main(m *testing.M, end ...func() error) {
	failpointtest.Arm()
	if role := os.Getenv(envRole); role != "" {
		if err := playRole(role); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if detector { // each step is many times slower, and what is drawn adds no other interleaving
		if err := flag.Set("rapid.checks", "10"); err != nil { // the command line still has the last word
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

// child prepares a process of the role; failpoints as in failpointtest.Env.
func child(t testing.TB, role, address string, seed, count int, failpoints string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self) //nolint:noctx // its end is the test's to choose
	cmd.Env = append(os.Environ(), envRole+"="+role, envAddress+"="+address, envSeed+"="+strconv.Itoa(seed), envCount+"="+strconv.Itoa(count), failpointtest.Env+"="+failpoints)
	return cmd
}

// worker is a child's view of the ledger.
type worker struct {
	ctx    context.Context
	l      ledger.Ledger
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
	l, err := ledger.Open(ctx, os.Getenv(envAddress), ledger.Options{Lease: testLease})
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

// said tells the parent what is done: from then on it must never be lost.
func (w *worker) said(what, v string) {
	if !w.silent {
		_, _ = os.Stdout.WriteString(what + " " + v + "\n")
	}
}

// ownCredit is what a life sets aside: less than the hour of it costs, so that
// the rest is overage.
func ownCredit(n int64) *ledger.Reserve {
	return &ledger.Reserve{Currency: "USD", Amount: n, IfGranted: true}
}

// live takes a sandbox from Begin to its end, unless its name is taken; then
// it buries the one who has it, should that one's process be dead.
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
		return w.bury(taken.Existing)
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

// bury ends a sandbox that a dead process left. A living one's is let alone.
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

// lost takes for no failure that another was faster or is busy: that is what
// the competition is about.
func (w *worker) lost(err error) error {
	if extensions.IsKind(err, extensions.KindConflict) {
		return nil
	}
	return err
}

// acknowledged are the keys a child said are done.
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
