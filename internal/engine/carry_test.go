package engine_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// kept makes a sandbox on hosts with the file f, and a snapshot of it.
func kept(t *testing.T, e *engine.Engine, name string, hosts ...string) (engine.Sandbox, engine.SnapshotView) {
	t.Helper()
	s, err := e.Create(t.Context(), engine.Request{Profile: "profile.any", Name: name, Hosts: hosts}, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	if _, err := e.Exec(t.Context(), s.Receipt, engine.ExecRequest{Shell: "printf kept >f"}); err != nil {
		t.Fatal(told(err))
	}
	snap, err := e.Snapshot(t.Context(), s.Receipt, engine.SnapshotRequest{Name: name})
	if err != nil {
		t.Fatal(told(err))
	}
	return s, snap
}

func content(t *testing.T, e *engine.Engine, s engine.Sandbox) string {
	t.Helper()
	res, err := e.Exec(t.Context(), s.Receipt, engine.ExecRequest{Shell: "cat f"})
	if err != nil {
		t.Fatal(told(err))
	}
	return string(res.Stdout)
}

func TestAPortableSnapshotIsRestoredAtAnotherPlace(t *testing.T) {
	t.Parallel()
	far := onSSH(false)
	for _, c := range []struct {
		name     string
		from, to []string
		keeps    string
	}{{"here-to-there", nil, []string{far.Ref()}, "this-machine"}, {"there-to-here", []string{far.Ref()}, nil, "far"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, x := newAnywhere(t, func(d *extensions.Descriptor) { d.Capabilities.Arch = []string{"*"} })
			s, snap := kept(t, e, "one", c.from...)
			again := engine.Request{Profile: "profile.any", Name: "two", Hosts: c.to, FromSnapshot: snap.ID}
			p, err := e.Plan(t.Context(), again)
			if err != nil || !strings.Contains(toldOf(p.Notices), "is restored at another place") {
				t.Errorf("the plan tells %s, %v", toldOf(p.Notices), told(err))
			}
			restored, err := e.Create(t.Context(), again, nil, nil)
			if err != nil {
				t.Fatal(told(err))
			}
			if got := content(t, e, restored); got != "kept" {
				t.Errorf("the restored one reads %q", got)
			}
			here := engine.Request{Profile: "profile.any", Name: "three", FromSnapshot: snap.ID, Hosts: c.from}
			home, err := e.Create(t.Context(), here, nil, nil)
			if err != nil || home.Host != s.Host {
				t.Errorf("without a need to move it starts at %q, %v", home.Host, told(err))
			}
			for _, s := range []engine.Sandbox{s, restored, home} {
				if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
					t.Error(told(err))
				}
			}
			for _, on := range []string{"this-machine", "far"} {
				left, err := vendor.At(filepath.Join(x.dir, on)).Snapshots()
				if want := map[bool]int{true: 1}[on == c.keeps]; err != nil || len(left) != want {
					t.Errorf("%s keeps %d snapshots, %v", on, len(left), err)
				}
			}
			if _, err := e.DeleteSnapshot(t.Context(), snap, false); err != nil {
				t.Error(told(err))
			}
		})
	}
}

func toldOf(all []engine.Notice) string {
	var out []string
	for _, n := range all {
		out = append(out, n.Summary)
	}
	return strings.Join(out, "; ")
}

// Where the origin is among several, it comes first, and no copy is needed.
func TestTheOriginOfASnapshotIsPreferred(t *testing.T) {
	t.Parallel()
	e, _ := newAnywhere(t, nil)
	far, near := onSSH(false), engine.Host{Name: "desk", Local: true}
	s, snap := kept(t, e, "one", far.Ref())
	restored, err := e.Create(t.Context(), engine.Request{Profile: "profile.any", Name: "two", FromSnapshot: snap.ID,
		Hosts: []string{near.Ref(), far.Ref()}}, nil, nil)
	if err != nil || restored.Host != far.Ref() {
		t.Errorf("it starts at %q, %v", restored.Host, told(err))
	}
	for _, s := range []engine.Sandbox{s, restored} {
		if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Error(told(err))
		}
	}
}

// Whatever goes wrong at the place that keeps it, nothing is left at the one that was to restore it.
func TestASnapshotThatCannotBeReadLeavesNothing(t *testing.T) {
	t.Parallel()
	takesLong(t)
	far := onSSH(false)
	for name, c := range map[string]struct {
		breaks func(t *testing.T, x anywhere)
		kind   extensions.Kind
		says   string
	}{
		"its place is unreachable": {func(t *testing.T, x anywhere) {
			rule(t, x, saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
		}, extensions.KindUnreachable, ", which ext.anywhere keeps, could not be read"},
		"its place loses it meanwhile": {func(t *testing.T, x anywhere) {
			rule(t, x, saasstub.Rule{Op: vendor.OpReadSnapshot, Do: vendor.DoUnreachable})
		}, extensions.KindUnreachable, ", which ext.anywhere keeps, could not be read"},
		"its bytes are not those that were kept": {func(t *testing.T, x anywhere) {
			all, err := filepath.Glob(filepath.Join(x.dir, "this-machine", "snapshots", "*.tar"))
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			alterFile(t, all[0])
		}, extensions.KindInvalid, "does not match its digest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, x := newAnywhere(t, nil)
			s, snap := kept(t, e, "one")
			c.breaks(t, x)
			_, err := e.Create(t.Context(), engine.Request{Profile: "profile.any", Name: "two", Hosts: []string{far.Ref()},
				FromSnapshot: snap.ID}, nil, nil)
			if !extensions.IsKind(err, c.kind) || !strings.Contains(told(err), c.says) {
				t.Errorf("a restore elsewhere: %v", told(err))
			}
			if n := x.runs(t, "far"); n != 0 {
				t.Errorf("%d sandboxes are left", n)
			}
			rule(t, x)
			later, err := e.Create(t.Context(), engine.Request{Profile: "profile.any", Name: "three", Hosts: []string{far.Ref()}}, nil, nil)
			if err != nil {
				t.Errorf("the place that was to restore it is taken for dead: %v", told(err))
			}
			for _, s := range []engine.Sandbox{s, later} {
				if _, err := e.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil {
					t.Error(told(err))
				}
			}
		})
	}
}

func rule(t *testing.T, x anywhere, rules ...saasstub.Rule) {
	t.Helper()
	if err := saasstub.WriteScript(filepath.Join(x.dir, "this-machine"), saasstub.Script{Rules: rules}); err != nil {
		t.Fatal(err)
	}
}

// A place of another architecture is refused, once it is known.
func TestASnapshotMovesOnlyWithinItsArchitecture(t *testing.T) {
	t.Parallel()
	e, _ := newAnywhere(t, func(d *extensions.Descriptor) { d.Native, d.Capabilities.Arch = true, []string{"riscv64"} })
	far := onSSH(false)
	s, snap := kept(t, e, "one") // on this machine, which is none
	_, err := e.Create(t.Context(), engine.Request{Profile: "profile.any", Name: "two", Hosts: []string{far.Ref()}, FromSnapshot: snap.ID},
		nil, nil)
	if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(told(err), "and this place is riscv64") {
		t.Errorf("a restore there: %v", told(err))
	}
	if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(told(err))
	}
}

// alterFile changes one byte of the content of f in an archive.
func alterFile(t *testing.T, archive string) {
	t.Helper()
	b, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	out := bytes.ReplaceAll(b, []byte("kept"), []byte("left"))
	if bytes.Equal(out, b) {
		t.Fatal("the archive does not show its content")
	}
	if err := os.WriteFile(archive, out, 0o600); err != nil {
		t.Fatal(err)
	}
}
