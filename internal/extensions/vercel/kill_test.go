package vercel_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

// task is a create, the extension of a handle, or its end.
type task struct {
	API, Token, Team, Project string
	ID                        extensions.ID
	Extend, End               string // a handle
	To                        time.Time
}

func TestMain(m *testing.M) {
	if !vendortest.Victim(task.work) {
		goleak.VerifyTestMain(m)
	}
}

func (w task) config() extensions.Config {
	return extensions.Config{Binding: "ext.vercel", Account: "acme/web", Values: map[string]any{"api_url": w.API, "plan": "pro"},
		Credentials: secrets("token", w.Token, "team_id", w.Team, "project_id", w.Project)}
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

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (w task) work() {
	ctx := context.Background()
	b := must1(vercel.New().Open(ctx, w.config()))
	switch {
	case w.End != "":
		_ = must1(b.Teardown(ctx, must1(extensions.DecodeHandle(w.End))))
	case w.Extend != "":
		if err := b.(extensions.Extender).Extend(ctx, must1(extensions.DecodeHandle(w.Extend)), w.To); err != nil {
			panic(err)
		}
	default:
		h, _, err := b.Provision(ctx, w.spec())
		if err != nil {
			panic(err)
		}
		_ = must1(b.WaitReady(ctx, w.spec(), h))
	}
}

func TestAKillAtAnyRequestLeavesNothingAndMakesNothingTwice(t *testing.T) {
	t.Parallel()
	v := verceltest.Start(t)
	k := v.Killer(t)
	front := task{API: k.APIURL, Token: v.Token, Team: v.Team, Project: v.Project}
	here := front
	here.API = v.APIURL
	b, err := vercel.New().Open(t.Context(), here.config())
	must(t, err)
	defer func() { must(t, b.Close()) }()
	// ready makes a sandbox whole, whatever is there of it.
	ready := func(w task) extensions.Handle {
		h, _, err := b.Provision(t.Context(), w.spec())
		must(t, err)
		_, err = b.WaitReady(t.Context(), w.spec(), h)
		must(t, err)
		return h
	}
	for _, after := range []bool{false, true} {
		creates := int64(1)
		for ; ; creates++ {
			w := front
			w.ID = must1(extensions.NewID(nil))
			killed := k.Run(t, w, creates, after)
			h := ready(w)
			r, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: `printf %s "$A"; cat ` + extensions.InstructionsPath})
			if err != nil || string(r.Stdout) != "wholewhole" || len(v.Sandboxes()) != 1 {
				t.Fatalf("after a kill at request %d (done: %t): %q, %v, %d sandboxes", creates, after, r.Stdout, err, len(v.Sandboxes()))
			}
			if creates == 1 {
				extendKilled(t, k, b, w, h, after)
			}
			w.End = h.Encode()
			for ends := int64(1); k.Run(t, w, ends, after); ends++ {
				_, err := b.Teardown(t.Context(), h)
				must(t, err)
				if creates > 1 {
					break // each request of an end once is enough
				}
				w.End = ready(w).Encode()
			}
			if left := v.Sandboxes(); len(left) > 0 {
				t.Fatalf("killed at request %d (done: %t): %d sandboxes are left", creates, after, len(left))
			}
			if !killed {
				break
			}
		}
		if creates < 6 {
			t.Errorf("a create makes only %d requests", creates)
		}
	}
}

// extendKilled kills an extension at each request: whoever does it again adds nothing twice.
func extendKilled(t *testing.T, k *verceltest.Killer, b extensions.Backend, w task, h extensions.Handle, after bool) {
	t.Helper()
	w.Extend = h.Encode()
	w.To = time.Now().Add(30 * time.Minute)
	for n := int64(1); ; n++ {
		w.To = w.To.Add(time.Minute)
		killed := k.Run(t, w, n, after)
		must(t, b.(extensions.Extender).Extend(t.Context(), h, w.To))
		all, err := b.Status(t.Context(), []extensions.Handle{h})
		must(t, err)
		if late := all[0].Deadline.Sub(w.To); late.Abs() > time.Second {
			t.Fatalf("an extension killed at request %d (done: %t) ends it %s later than asked", n, after, late)
		}
		if !killed {
			return
		}
	}
}
