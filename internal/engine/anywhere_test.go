package engine_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// anywhere is the stub vendor as if it ran on this machine and on hosts over
// SSH. Each machine has a folder of its own.
type anywhere struct {
	extensions.Extension
	dir  string
	says func(*extensions.Descriptor) // may be nil
}

// staying keeps the snapshots of a place there.
func staying(d *extensions.Descriptor) {
	d.Powers = slices.DeleteFunc(d.Powers, func(p extensions.Power) bool { return p == extensions.PowerReadSnapshot })
	d.Snapshots.Portable = nil
}

func (x anywhere) Describe() extensions.Descriptor {
	d := x.Extension.Describe()
	d.Handler, d.Places, d.NamedOnly = "anywhere", []extensions.Place{extensions.PlaceMachine, extensions.PlaceHost}, false
	if x.says != nil {
		x.says(&d)
	}
	return d
}

func (x anywhere) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	on := "this-machine"
	if cfg.Host != nil && !cfg.Host.Local {
		on = cfg.Host.Name
	}
	cfg.Values = map[string]any{"dir": filepath.Join(x.dir, on)}
	return x.Extension.Open(ctx, cfg)
}

func (x anywhere) runs(t *testing.T, on string) int {
	t.Helper()
	objs, err := vendor.At(filepath.Join(x.dir, on)).Objects()
	if err != nil {
		t.Fatal(err)
	}
	return len(objs)
}

func newAnywhere(t *testing.T, says func(*extensions.Descriptor)) (*engine.Engine, anywhere) {
	t.Helper()
	x := anywhere{saasstub.New(), t.TempDir(), says}
	files := map[string]string{"extensions/ext.anywhere.yaml": "id: ext.anywhere\nhandler: anywhere\n",
		"profiles/profile.any.yaml": "id: profile.any\nversion: \"1.0.0\"\n" + common}
	e, err := engine.New(engine.Options{Extensions: []extensions.Extension{x}, StateDir: t.TempDir(), Account: "acme/web",
		Catalog: []string{folder(t, files)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, x
}

func TestOneBindingRunsOnThisMachineAndOnHosts(t *testing.T) {
	t.Parallel()
	e, x := newAnywhere(t, nil)
	far, near := onSSH(false), engine.Host{Name: "desk", Local: true}
	for _, c := range []struct {
		name  string
		hosts []string
		on    string
		host  string
	}{{"unnamed", nil, "this-machine", ""}, {"local", []string{near.Ref()}, "this-machine", near.Ref()},
		{"remote", []string{far.Ref()}, "far", far.Ref()},
		{"in-order", []string{far.Ref(), near.Ref()}, "far", far.Ref()}} {
		before := x.runs(t, c.on)
		p, err := e.Plan(t.Context(), engine.Request{Profile: "profile.any", Name: c.name, Hosts: c.hosts})
		if err != nil {
			t.Fatalf("%s: plan: %s", c.name, told(err))
		}
		if len(p.Route.Refused) > 0 {
			t.Errorf("%s: the plan refuses %+v", c.name, p.Route.Refused)
		}
		s, err := e.Create(t.Context(), engine.Request{Profile: "profile.any", Name: c.name, Hosts: c.hosts}, nil, nil)
		if err != nil {
			t.Fatalf("%s: create: %s", c.name, told(err))
		}
		if s.Host != c.host || x.runs(t, c.on) != before+1 {
			t.Errorf("%s: it runs on %q, and %s has %d more", c.name, s.Host, c.on, x.runs(t, c.on)-before)
		}
		if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil || x.runs(t, c.on) != before {
			t.Errorf("%s: destroy: %v", c.name, told(err))
		}
	}
}

// A snapshot of a kind that is not portable stays on the machine that made it, whichever the kinds of place are.
func TestASnapshotOfOneMachineIsNotRestoredOnAnother(t *testing.T) {
	t.Parallel()
	e, _ := newAnywhere(t, staying)
	far := onSSH(false)
	for _, c := range []struct {
		name     string
		from, to []string
		says     string
	}{{"here-to-there", nil, []string{far.Ref()}, "lives on this machine"}, {"there-to-here", []string{far.Ref()}, nil, "lives on host far"}} {
		s, err := e.Create(t.Context(), engine.Request{Profile: "profile.any", Name: c.name, Hosts: c.from}, nil, nil)
		if err != nil {
			t.Fatalf("%s: %s", c.name, told(err))
		}
		snap, err := e.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{Name: "kept-" + c.name})
		if err != nil {
			t.Fatalf("%s: %s", c.name, told(err))
		}
		again := engine.Request{Profile: "profile.any", Name: c.name + "-2", Hosts: c.to, FromSnapshot: snap.ID}
		if _, err := e.Create(t.Context(), again, nil, nil); err == nil || !strings.Contains(told(err), c.says) {
			t.Errorf("%s: a restore elsewhere: %v", c.name, told(err))
		}
		again.Hosts = c.from
		restored, err := e.Create(t.Context(), again, nil, nil)
		if err != nil {
			t.Errorf("%s: a restore at home: %s", c.name, told(err))
		}
		for _, r := range []engine.Sandbox{s, restored} {
			if _, err := e.Destroy(t.Context(), r.Receipt, engine.DestroyOptions{}); err != nil {
				t.Error(told(err))
			}
		}
		if _, err := e.DeleteSnapshot(t.Context(), snap, false); err != nil {
			t.Error(told(err))
		}
	}
}

// A sweep asks this machine although the binding runs on hosts too.
func TestASweepFindsOrphansOfABindingThatRunsAnywhere(t *testing.T) {
	t.Parallel()
	e, x := newAnywhere(t, nil)
	b, err := x.Open(t.Context(), extensions.Config{Binding: "ext.anywhere", Account: "acme/web"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	spec := exttest.Spec(t, extensions.Config{Account: "acme/web"},
		exttest.With(func(s *extensions.Spec) { s.Isolation = extensions.IsolationContainer }))
	if _, _, err := b.Provision(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	report, err := e.Sweep(t.Context(), true, nil)
	if err != nil || len(report.Orphans) != 1 || !strings.Contains(report.Orphans[0], string(spec.ID)) {
		t.Errorf("orphans %v, %v", report.Orphans, err)
	}
}
