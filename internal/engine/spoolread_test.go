package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What runs here can be found and used while only this machine knows of it, and
// what the ledger may know is not called unknown.
func TestWhatTheSpoolHasIsFoundWithoutTheLedger(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := newOffline(t)
	before, err := m.Create(ctx, engine.Request{Profile: own.Profile, Name: "before", TTL: "10m"}, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	m.cut.Off()
	e := m.next()
	if list, err := e.List(ctx, false); !extensions.IsKind(err, extensions.KindUnavailable) || len(list) > 0 {
		t.Errorf("without a spool: %+v, %s", list, told(err))
	}
	s, err := e.Create(ctx, own, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	e = m.next()
	list, err := e.List(ctx, false)
	if !extensions.IsKind(err, extensions.KindUnavailable) || !strings.Contains(err.Error(), "cannot be reached") || len(list) != 1 || list[0].ID != s.ID {
		t.Errorf("listed: %+v, %s", list, told(err))
	}
	for name, look := range map[string]func() (engine.Sandbox, error){
		"by name": func() (engine.Sandbox, error) { return e.Lookup(ctx, "", "", "one") },
		"by id":   func() (engine.Sandbox, error) { return e.Lookup(ctx, s.ID, "", "") },
	} {
		got, err := look()
		if err != nil || got.ID != s.ID || !strings.Contains(notices(got.Notices), "cannot be reached") {
			t.Fatalf("%s: %+v, %s", name, got, told(err))
		}
		if res, err := e.Exec(ctx, got.Receipt, engine.ExecRequest{Command: []string{"echo", "hi"}}); err != nil || string(res.Stdout) != "hi\n" {
			t.Errorf("%s: %q, %s", name, res.Stdout, told(err))
		}
	}
	if _, err := e.Lookup(ctx, "", "", "before"); !extensions.IsKind(err, extensions.KindUnavailable) {
		t.Errorf("what the ledger has: %s", told(err))
	}
	m.cut.On()
	back := m.next()
	if _, err := back.Sweep(ctx, false, nil); err != nil {
		t.Fatal(told(err))
	}
	if list, err := back.List(ctx, false); err != nil || len(list) != 2 {
		t.Errorf("with the ledger: %+v, %s", list, told(err))
	}
	if got, err := back.Lookup(ctx, s.ID, "", ""); err != nil || len(got.Notices) > 0 {
		t.Errorf("with the ledger: %+v, %s", got.Notices, told(err))
	}
	for _, x := range []engine.Sandbox{before, s} {
		if _, err := back.Destroy(ctx, x.Receipt, engine.DestroyOptions{}); err != nil {
			t.Error(told(err))
		}
	}
	m.sound()
}
