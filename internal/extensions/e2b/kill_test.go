package e2b_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/e2btest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// task is a create, or the end of a handle.
type task struct {
	API, Sandbox, Key string
	ID                extensions.ID
	End               string // a handle
	Fork              string // the handle of its source
}

func TestMain(m *testing.M) {
	if !vendortest.Victim(task.work) {
		goleak.VerifyTestMain(m)
	}
}

func (w task) config() extensions.Config {
	return extensions.Config{Binding: "ext.e2b", Account: "acme/web",
		Values:      map[string]any{"api_url": w.API, "sandbox_url": w.Sandbox, "plan": "pro"},
		Credentials: map[string]extensions.Secret{"api_key": extensions.NewSecret(w.Key)}}
}

// spec is the same in every process.
func (w task) spec() extensions.Spec {
	now := time.Now().UTC()
	s := extensions.Spec{ID: w.ID, Account: "acme/web", Generation: 1, CreatedAt: now, Deadline: now.Add(20 * time.Minute),
		Network: extensions.Network{Default: "deny"}, Instructions: "whole", Env: map[string]string{"A": "whole"},
		Workspace: extensions.Workspace{Mode: extensions.WorkspaceRemoteCanonical, Access: extensions.AccessRW}}
	if w.Fork != "" {
		s.Source = must1(extensions.DecodeHandle(w.Fork))
		s.FromSandbox = s.Source.ID
		s.Deadline = now.Add(e2b.New().Describe().Find.Claim)
	}
	s.Labels = exttest.Labels(s)
	return s
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (w task) work() {
	ctx := context.Background()
	b := must1(e2b.New().Open(ctx, w.config()))
	if w.End != "" {
		_ = must1(b.Teardown(ctx, must1(extensions.DecodeHandle(w.End))))
		return
	}
	h, _, err := b.Provision(ctx, w.spec())
	if err != nil {
		panic(err)
	}
	if err := b.(extensions.Extender).Extend(ctx, h, time.Now().Add(time.Hour)); err != nil {
		panic(err)
	}
	_ = must1(b.WaitReady(ctx, w.spec(), h))
}

func TestAKillAtAnyRequestLeavesNothingAndMakesNothingTwice(t *testing.T) {
	t.Parallel()
	v := e2btest.Start(t)
	k := v.Killer(t)
	here := task{API: v.APIURL, Sandbox: v.SandboxURL, Key: v.Key}
	b, err := e2b.New().Open(t.Context(), here.config())
	must(t, err)
	defer func() { must(t, b.Close()) }()
	x := b.(extensions.Execer)
	for _, after := range []bool{false, true} {
		creates := int64(1)
		for ; ; creates++ {
			w := task{API: k.APIURL, Sandbox: k.SandboxURL, Key: v.Key, ID: must1(extensions.NewID(nil))}
			killed := k.Run(t, w, creates, after)
			if n := len(v.Sandboxes()); n > 1 {
				t.Fatalf("killed at request %d (done: %t): %d sandboxes", creates, after, n)
			}
			h, _, err := b.Provision(t.Context(), w.spec())
			must(t, err)
			_, err = b.WaitReady(t.Context(), w.spec(), h)
			must(t, err)
			r, err := x.Exec(t.Context(), h, extensions.ExecRequest{Shell: `printf %s "$A"; cat ` + extensions.InstructionsPath})
			if err != nil || string(r.Stdout) != "wholewhole" || len(v.Sandboxes()) != 1 {
				t.Fatalf("after a kill at request %d (done: %t): %q, %v, %d sandboxes", creates, after, r.Stdout, err, len(v.Sandboxes()))
			}
			w.End = h.Encode()
			for ends := int64(1); k.Run(t, w, ends, after); ends++ {
				_, err := b.Teardown(t.Context(), h)
				must(t, err)
				if creates > 1 {
					break // each request of an end once is enough
				}
				h, _, err = b.Provision(t.Context(), w.spec())
				must(t, err)
				w.End = h.Encode()
			}
			if left := v.Sandboxes(); len(left) > 0 {
				t.Fatalf("killed at request %d (done: %t): %d sandboxes are left", creates, after, len(left))
			}
			if !killed {
				break
			}
		}
		if creates < 8 {
			t.Errorf("a create makes only %d requests", creates)
		}
	}
}
