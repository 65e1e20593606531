package openshell_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/openshelltest"
)

// victimEnv holds what the process that is to be killed does.
const victimEnv = "SANDBOXER_TEST_OPENSHELL_VICTIM"

// task is a create, and what comes of it.
type task struct {
	URL, Issuer, Client, Secret string
	ID                          extensions.ID
}

func TestMain(m *testing.M) {
	if text := os.Getenv(victimEnv); text != "" {
		var w task
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			panic(err)
		}
		if err := w.work(); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func taskAt(t *testing.T, g *openshelltest.Gateway, k *openshelltest.Killer) task {
	t.Helper()
	id, err := extensions.NewID(nil)
	must(t, err)
	return task{URL: k.URL, Issuer: g.Issuer, Client: g.ClientID, Secret: g.Secret, ID: id}
}

func (w task) config() extensions.Config {
	return configFor(&openshelltest.Gateway{Issuer: w.Issuer, ClientID: w.Client, Secret: w.Secret}, w.URL)
}

// spec is the same in every process.
func (w task) spec() extensions.Spec {
	now := time.Now().UTC()
	s := extensions.Spec{ID: w.ID, Account: "acme/web", Generation: 1, CreatedAt: now, Deadline: now.Add(20 * time.Minute),
		Network: extensions.Network{Default: "deny"}, Instructions: "whole", Env: map[string]string{"A": "whole"},
		Workspace: extensions.Workspace{Mode: extensions.WorkspaceRemoteCanonical, Access: extensions.AccessRW}}
	s.Labels = exttest.Labels(s)
	return s
}

// work makes a sandbox, and ends with its first failure.
func (w task) work() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	b, err := openshell.New().Open(ctx, w.config())
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	h, _, err := b.Provision(ctx, w.spec())
	if err != nil {
		return err
	}
	_, err = b.WaitReady(ctx, w.spec(), h)
	return err
}

// converges demands that another run makes the one sandbox whole and ends it, whatever the first one left.
func converges(t *testing.T, g *openshelltest.Gateway, b extensions.Backend, w task, at int64, done bool) {
	t.Helper()
	if n := len(g.Sandboxes()); n > 1 {
		t.Fatalf("stopped at call %d (done: %t): %d sandboxes", at, done, n)
	}
	h, _, err := b.Provision(t.Context(), w.spec())
	must(t, err)
	_, err = b.WaitReady(t.Context(), w.spec(), h)
	must(t, err)
	r, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: `printf %s "$A"; cat ` + extensions.InstructionsPath})
	if err != nil || string(r.Stdout) != "wholewhole" || len(g.Sandboxes()) != 1 {
		t.Fatalf("after a stop at call %d (done: %t): %q, %v, %d sandboxes", at, done, r.Stdout, err, len(g.Sandboxes()))
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	if left := g.Sandboxes(); len(left) > 0 {
		t.Fatalf("stopped at call %d (done: %t): %d sandboxes are left", at, done, len(left))
	}
}

// From its nth call on, a first run reaches the gateway no more, and nothing that it would do then counts.
func TestAStopAtAnyCallLeavesNothingAndMakesNothingTwice(t *testing.T) {
	t.Parallel()
	g := openshelltest.Start(t, openshelltest.OIDC)
	b := open(t, configFor(g, g.URL))
	for _, after := range []bool{false, true} {
		n := int64(1)
		for ; ; n++ {
			k := g.Killer(t)
			k.Cut(n, after)
			w := taskAt(t, g, k)
			stopped := w.work() != nil
			converges(t, g, b, w, n, after)
			if !stopped {
				break
			}
		}
		if n < 10 {
			t.Errorf("a create makes only %d calls", n)
		}
	}
}

// A process that is killed at the create itself, before the gateway has it and after.
func TestAKilledCreateIsFound(t *testing.T) {
	t.Parallel()
	g := openshelltest.Start(t, openshelltest.OIDC)
	k := g.Killer(t)
	b := open(t, configFor(g, g.URL))
	self, err := os.Executable()
	must(t, err)
	run := func(w task, n int64, after bool) (killed bool) {
		text, err := json.Marshal(w)
		must(t, err)
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), victimEnv+"="+string(text))
		must(t, k.Start(cmd, n, after))
		return k.Wait() != nil
	}
	w := taskAt(t, g, k)
	if run(w, 0, false) {
		t.Fatal("a run that nobody kills fails")
	}
	converges(t, g, b, w, 0, false)
	for _, after := range []bool{false, true} { // the create is the first call
		w := taskAt(t, g, k)
		if !run(w, 1, after) {
			t.Fatal("it was not killed at the create")
		}
		if made := len(g.Sandboxes()); made == 1 != after {
			t.Errorf("killed at the create (done: %t): %d sandboxes", after, made)
		}
		converges(t, g, b, w, 1, after)
	}
}
