package engine_test

import (
	"context"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestASnapshotOfTheWholeFileSystemIsNotInstalledAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	// Its snapshots hold the whole file system.
	disk := &hooked{handler: "whole-disk", says: func(d *extensions.Descriptor) { d.NamedOnly = false },
		does: func(c *calls, _ extensions.Config) {
			take, stat := c.Snapshot, c.StatSnapshot
			c.Snapshot = func(ctx context.Context, h extensions.Handle, s extensions.SnapshotSpec) (extensions.Snapshot, error) {
				out, err := take(ctx, h, s)
				out.Kind = "filesystem"
				return out, err
			}
			c.StatSnapshot = func(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
				out, err := stat(ctx, h)
				out.Kind = "filesystem"
				return out, err
			}
		}}
	b := newBench(t, having(disk), onFiles(map[string]string{
		"extensions/ext.disk.yaml": "id: ext.disk\ntitle: Disk\nhandler: whole-disk\nconfig: { dir: \"$VENDOR\" }\n",
		"profiles/t.yaml": "id: profile.t\nversion: \"1.0.0\"\nextension: ext.disk\n" + common +
			"toolchain: { install: [\"echo install >> log\"], post_acquire: [\"echo post >> log\"] }\n",
	}))
	s := b.create(engine.Request{Profile: "profile.t", Name: "one"})
	snap, err := b.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{Name: "kept"})
	if err != nil || snap.Kind != "filesystem" {
		t.Fatalf("%+v, %v", snap, err)
	}
	for where, e := range map[string]*engine.Engine{"by the ledger": b.Engine, "on another machine": b.machine()} {
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
	b.end(s)
}
