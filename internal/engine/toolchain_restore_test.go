package engine_test

import (
	"context"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
)

// wholeDisk is the stub vendor as if its snapshots held the whole file system.
type wholeDisk struct{ extensions.Extension }

func (x wholeDisk) Describe() extensions.Descriptor {
	d := x.Extension.Describe()
	d.Handler, d.Powers = "whole-disk", []extensions.Power{extensions.PowerExec, extensions.PowerSnapshot}
	d.NamedOnly, d.Capabilities.CapacityQuery, d.Capabilities.ExtendTTL = false, false, false
	return d
}

type diskBackend struct {
	extensions.Backend
	extensions.Execer
	extensions.Snapshotter
}

func (x wholeDisk) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	b, err := x.Extension.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return diskBackend{b, b.(extensions.Execer), b.(extensions.Snapshotter)}, nil
}

func (b diskBackend) Snapshot(ctx context.Context, h extensions.Handle, s extensions.SnapshotSpec) (extensions.Snapshot, error) {
	out, err := b.Snapshotter.Snapshot(ctx, h, s)
	out.Kind = "filesystem"
	return out, err
}

func (b diskBackend) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
	out, err := b.Snapshotter.StatSnapshot(ctx, h)
	out.Kind = "filesystem"
	return out, err
}

func TestASnapshotOfTheWholeFileSystemIsNotInstalledAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBench(t)
	dir := folder(t, map[string]string{
		"extensions/ext.disk.yaml": "id: ext.disk\ntitle: Disk\nhandler: whole-disk\nconfig: { dir: \"" + b.dir + "/saas-stub\" }\n",
		"profiles/t.yaml": "id: profile.t\nversion: \"1.0.0\"\nextension: ext.disk\n" + common +
			"toolchain: { install: [\"echo install >> log\"], post_acquire: [\"echo post >> log\"] }\n",
	})
	open := func(state string) *engine.Engine {
		e, err := engine.New(engine.Options{Extensions: append(all(), wholeDisk{saasstub.New()}), StateDir: state, Account: "acme/web", Catalog: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	b.Engine = open(b.dir)
	s := b.create(engine.Request{Profile: "profile.t", Name: "one"})
	snap, err := b.Snapshot(ctx, s.Receipt, "kept")
	if err != nil || snap.Kind != "filesystem" {
		t.Fatalf("%+v, %v", snap, err)
	}
	for where, e := range map[string]*engine.Engine{"by the ledger": b.Engine, "on another machine": open(t.TempDir())} {
		restored, err := e.Create(ctx, engine.Request{Profile: "profile.t", Name: "two", FromSnapshot: snap.ID}, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		res, err := e.Exec(ctx, restored.Receipt, engine.ExecRequest{Shell: "cat log"})
		if err != nil || string(res.Stdout) != "install\npost\npost\n" {
			t.Errorf("%s: ran %q, %v", where, res.Stdout, err)
		}
		if _, err := e.Destroy(ctx, restored.Receipt, engine.DestroyOptions{}); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	if _, err := b.DeleteSnapshot(ctx, snap, false); err != nil {
		t.Error(err)
	}
	if _, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(err)
	}
}
