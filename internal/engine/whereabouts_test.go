package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Where a sandbox is that only its id tells of is asked of all places side by side: none of these answers before
// both were asked.
func TestPlacesAreAskedSideBySideWhereASandboxIs(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	both.Add(2)
	meets := &hooked{handler: "meets", does: func(c *calls, _ extensions.Config) {
		find, once := c.Find, new(sync.Once)
		c.Find = func(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
			once.Do(both.Done)
			met := make(chan struct{})
			go func() { both.Wait(); close(met) }()
			select {
			case <-met:
				return find(ctx, id)
			case <-time.After(time.Minute):
				return extensions.Handle{}, extensions.Errorf(extensions.KindUnreachable, "the other place was not asked meanwhile")
			}
		}
	}}
	b := newBench(t, having(meets), onFiles(map[string]string{
		"extensions/ext.a.yaml": "id: ext.a\nhandler: meets\nconfig: { dir: \"$VENDOR\" }\n",
		"extensions/ext.b.yaml": "id: ext.b\nhandler: meets\nconfig: { dir: \"$DEAR\" }\n",
		"profiles/t.yaml":       "id: profile.t\nversion: \"1.0.0\"\nextension: ext.b\n" + common,
	}))
	s := b.create(engine.Request{Profile: "profile.t", Name: "one"})
	got, err := b.elsewhere().Get(t.Context(), engine.Receipt{ID: s.ID, Name: s.Name, Account: "acme/web"})
	if err != nil || got.Extension != "ext.b" || !strings.Contains(got.Receipt.Handle, string(s.ID)) {
		t.Errorf("it is at %q: %s", got.Extension, told(err))
	}
	b.end(s)
}

// A place that takes no part in routing need not exist: that it does not answer is told only if a row names it, and
// nobody waits for it. If it answers, it counts like any other.
func TestAPlaceThatTakesNoPartIsAskedAndMayBeSilent(t *testing.T) {
	t.Parallel()
	silent := true
	apart := &hooked{handler: "apart",
		does: func(c *calls, _ extensions.Config) {
			find := c.Find
			c.Find = func(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
				if silent {
					return extensions.Handle{}, extensions.Errorf(extensions.KindUnreachable, "no engine answers")
				}
				return find(ctx, id)
			}
		}}
	b := newBench(t, having(apart), onFiles(map[string]string{
		"extensions/ext.apart.yaml": "id: ext.apart\nhandler: apart\nenabled: false\nconfig: { dir: \"$DEAR\" }\n",
		"profiles/t.yaml":           "id: profile.apart\nversion: \"1.0.0\"\nextension: ext.apart\n" + common,
	}))
	nowhere := engine.Receipt{ID: "sbx-aaaaaaaaaaaaaaaaaaaa", Name: "one", Account: "acme/web"}
	destroyed := func(e *engine.Engine) string {
		t.Helper()
		began := time.Now()
		r, err := e.Destroy(t.Context(), nowhere, engine.DestroyOptions{})
		if err != nil || !r.AlreadyGone {
			t.Errorf("%+v, %s", r, told(err))
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("a place that need not exist was waited for: %s", took)
		}
		return notices(r.Notices)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	back := b.damage(damages["no ledger"])
	if said := destroyed(b.reopen()); strings.Contains(said, "ext.apart") {
		t.Errorf("its silence is told: %s", said)
	}
	back()
	silent = false
	b.Engine = b.reopen()
	s := b.create(engine.Request{Profile: "profile.apart", Name: "two"})
	got, err := b.elsewhere().Get(t.Context(), engine.Receipt{ID: s.ID, Name: s.Name, Account: "acme/web"})
	if err != nil || got.Extension != "ext.apart" {
		t.Errorf("it answers, and %s is at %q: %s", s.ID, got.Extension, told(err))
	}
	b.end(s)
	b.clean()
}

// A registered host is a place like any other. Which hosts there are, only the ledger knows: without it, they are told as
// not asked.
func TestRegisteredHostsAreAskedWhereASandboxIs(t *testing.T) {
	t.Parallel()
	b := newHosts(t, map[string]string{"profiles/t.yaml": profile("profile.t", "extension: ext.hosted\n")})
	host := onSSH(true)
	other := b.elsewhere()
	for _, e := range []*engine.Engine{b.Engine, other} {
		if _, err := e.RegisterHost(t.Context(), host, ""); err != nil {
			t.Fatal(told(err))
		}
	}
	s := b.create(engine.Request{Profile: "profile.t", Name: "one", Hosts: []string{host.Ref()}})
	early := engine.Receipt{ID: s.ID, Name: s.Name, Account: "acme/web"}
	if got, err := other.Get(t.Context(), early); err != nil || got.HostName != host.Name || got.Host != host.Ref() {
		t.Errorf("it is at %q, host %q: %s", got.Extension, got.HostName, told(err))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	back := b.damage(damages["no ledger"])
	r, err := b.reopen().Destroy(t.Context(), early, engine.DestroyOptions{})
	if said := notices(r.Notices); err != nil || !r.AlreadyGone || !strings.Contains(said, "ext.hosted: only the ledger knows its hosts") {
		t.Errorf("without a ledger: %+v, %s", r, told(err))
	}
	back()
	if r, err := other.Destroy(t.Context(), early, engine.DestroyOptions{}); err != nil || r.AlreadyGone {
		t.Errorf("%+v, %s", r, told(err))
	}
}
