package daytona_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// task is a create, or the end of a handle.
type task struct {
	API, Key string
	ID       extensions.ID
	End      string // a handle
}

func TestMain(m *testing.M) {
	if !vendortest.Victim(task.work) {
		goleak.VerifyTestMain(m)
	}
}

func (w task) config() extensions.Config {
	return extensions.Config{Binding: "ext.daytona", Account: "acme/web", Values: map[string]any{"api_url": w.API},
		Credentials: map[string]extensions.Secret{"api_key": extensions.NewSecret(w.Key)}}
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
	b := must1(daytona.New().Open(ctx, w.config()))
	if w.End != "" {
		_ = must1(b.Teardown(ctx, must1(extensions.DecodeHandle(w.End))))
		return
	}
	h, _, err := b.Provision(ctx, w.spec())
	if err != nil {
		panic(err)
	}
	_ = must1(b.WaitReady(ctx, w.spec(), h))
}

// A kill before a request and one after the request before it leave the vendor alike, so each is tried once, when it is done.
func TestAKillAtAnyRequestLeavesNothingAndMakesNothingTwice(t *testing.T) {
	t.Parallel()
	v := daytonatest.Start(t)
	k := v.Killer(t)
	here := task{API: v.APIURL, Key: v.Key}
	b, err := daytona.New().Open(t.Context(), here.config())
	must(t, err)
	defer func() { must(t, b.Close()) }()
	x := b.(extensions.Execer)
	end := func(w task, h extensions.Handle, at int64) {
		t.Helper()
		w.End = h.Encode()
		if at > 0 {
			k.Run(t, w, at, true)
		}
		_, err := b.Teardown(t.Context(), h)
		must(t, err)
		if left := v.Sandboxes(); len(left) > 0 {
			t.Fatalf("killed after request %d of an end: %v are left", at, left)
		}
	}
	n := int64(1)
	for killed := true; killed; n++ {
		w := task{API: k.APIURL, Key: v.Key, ID: must1(extensions.NewID(nil))}
		killed = k.Run(t, w, n, true)
		if made := len(v.Sandboxes()); made > 1 {
			t.Fatalf("killed after request %d: %d sandboxes", n, made)
		}
		h, _, err := b.Provision(t.Context(), w.spec())
		must(t, err)
		_, err = b.WaitReady(t.Context(), w.spec(), h)
		must(t, err)
		r, err := x.Exec(t.Context(), h, extensions.ExecRequest{Shell: `printf %s "$A"; cat ` + extensions.InstructionsPath})
		if err != nil || string(r.Stdout) != "wholewhole" || len(v.Sandboxes()) != 1 {
			t.Fatalf("after a kill after request %d: %q, %v, %d sandboxes", n, r.Stdout, err, len(v.Sandboxes()))
		}
		end(w, h, n%5)
	}
	if n < 12 {
		t.Errorf("a create makes only %d requests", n)
	}
}
