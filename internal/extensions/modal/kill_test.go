package modal_test

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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal/modaltest"
)

// victimEnv holds what the process that is to be killed does.
const victimEnv = "SANDBOXER_TEST_MODAL_VICTIM"

// task is a create, and what comes of it.
type task struct {
	URL, TokenID, TokenSecret string
	ID                        extensions.ID
	GPU                       bool
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

func (w task) config() extensions.Config {
	return configFor(&modaltest.Vendor{TokenID: w.TokenID, TokenSecret: w.TokenSecret}, w.URL)
}

// spec is the same in every process.
func (w task) spec() extensions.Spec {
	now := time.Now().UTC()
	s := extensions.Spec{ID: w.ID, Account: "acme/web", Generation: 1, CreatedAt: now, Deadline: now.Add(20 * time.Minute),
		Network: extensions.Network{Default: "deny"}, Instructions: "whole", Env: map[string]string{"A": "whole"},
		Workspace: extensions.Workspace{Mode: extensions.WorkspaceRemoteCanonical, Access: extensions.AccessRW}}
	if w.GPU {
		withGPU(&s)
	}
	s.Labels = exttest.Labels(s)
	return s
}

// work makes a sandbox, and ends with its first failure.
func (w task) work() error {
	ctx, cancel := contextOf(time.Minute)
	defer cancel()
	b, err := modal.New().Open(ctx, w.config())
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
func converges(t *testing.T, v *modaltest.Vendor, b extensions.Backend, w task, at int64, done bool) {
	t.Helper()
	if n := len(v.Sandboxes()); n > 1 {
		t.Fatalf("stopped at call %d (done: %t): %d sandboxes", at, done, n)
	}
	h, _, err := b.Provision(t.Context(), w.spec())
	must(t, err)
	_, err = b.WaitReady(t.Context(), w.spec(), h)
	must(t, err)
	r, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: `printf %s "$A"; cat ` + extensions.InstructionsPath})
	if err != nil || string(r.Stdout) != "wholewhole" || len(v.Sandboxes()) != 1 {
		t.Fatalf("after a stop at call %d (done: %t): %q, %v, %d sandboxes", at, done, r.Stdout, err, len(v.Sandboxes()))
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	if left := v.Sandboxes(); len(left) > 0 {
		t.Fatalf("stopped at call %d (done: %t): %d sandboxes are left", at, done, len(left))
	}
}

// From its nth call on, a first run reaches the vendor no more, and nothing that it would do then counts.
func TestAStopAtAnyCallLeavesNothingAndMakesNothingTwice(t *testing.T) {
	t.Parallel()
	v := modaltest.Start(t)
	b := open(t, configFor(v, v.URL))
	for _, gpu := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			n := int64(1)
			for ; ; n++ {
				id, err := extensions.NewID(nil)
				must(t, err)
				k := v.Killer(t)
				k.Cut(n, after)
				w := task{URL: k.URL, TokenID: v.TokenID, TokenSecret: v.TokenSecret, ID: id, GPU: gpu}
				stopped := w.work() != nil
				converges(t, v, b, w, n, after)
				if !stopped {
					break
				}
				if n > 15 { // from here on all calls are alike: a command inside
					n += 6
				}
			}
			if n < 12 {
				t.Errorf("a create makes only %d calls", n)
			}
		}
	}
}

// A process that is killed at the create itself, before the vendor has it and after.
func TestAKilledCreateIsFound(t *testing.T) {
	t.Parallel()
	v := modaltest.Start(t)
	k := v.Killer(t)
	b := open(t, configFor(v, v.URL))
	self, err := os.Executable()
	must(t, err)
	id := func() extensions.ID {
		id, err := extensions.NewID(nil)
		must(t, err)
		return id
	}
	run := func(w task, n int64, after bool) (killed bool) {
		text, err := json.Marshal(w)
		must(t, err)
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), victimEnv+"="+string(text))
		must(t, k.Start(cmd, n, after))
		return k.Wait() != nil
	}
	w := task{URL: k.URL, TokenID: v.TokenID, TokenSecret: v.TokenSecret, ID: id()}
	if run(w, 0, false) {
		t.Fatal("a run that nobody kills fails")
	}
	converges(t, v, b, w, 0, false)
	at := int64(0) // the create's number among the calls of a run that finds its image there
	before := len(v.Requests())
	w.ID = id()
	run(w, 0, false)
	for n, r := range v.Requests()[before:] {
		if r.Method == "SandboxCreateV2" {
			at = int64(n) + 1
		}
	}
	converges(t, v, b, w, 0, false)
	for _, after := range []bool{false, true} {
		w.ID = id()
		if !run(w, at, after) {
			t.Fatalf("it was not killed at call %d", at)
		}
		if made := len(v.Sandboxes()); made == 1 != after {
			t.Errorf("killed at the create (done: %t): %d sandboxes", after, made)
		}
		converges(t, v, b, w, at, after)
	}
}

func contextOf(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
