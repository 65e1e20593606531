package engine_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// mortal is the stub vendor in a process that dies when it has sent so many bytes of a snapshot; 0 = never.
func mortal(at int64) extensions.Extension {
	return &hooked{does: func(c *calls, _ extensions.Config) {
		if read := c.ReadSnapshot; at > 0 {
			c.ReadSnapshot = func(ctx context.Context, h extensions.SnapshotHandle, w io.Writer) error {
				return read(ctx, h, &dying{w, at})
			}
		}
	}}
}

type dying struct {
	io.Writer
	left int64
}

func (d *dying) Write(p []byte) (int, error) {
	if int64(len(p)) < d.left {
		d.left -= int64(len(p))
		return d.Writer.Write(p)
	}
	_, _ = d.Writer.Write(p[:d.left])
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// Whenever the run dies that restores a snapshot at another place, the next one makes the sandbox once; the snapshot stays
// where it is, and nothing of it at the other place.
func TestAKillAtAnyStepOfARestoreAtAnotherPlaceConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	far := onSSH(false)
	deaths := map[string]order{}
	for _, point := range failpointtest.Names("engine.create.") {
		deaths[point] = order{}
	}
	for _, at := range []int64{1, 700, 1500} {
		deaths[fmt.Sprintf("byte %d", at)] = order{DieAt: at}
	}
	for name, o := range deaths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machines := t.TempDir()
			b := newBench(t, having(anywhere{mortal(0), machines, nil}), onFiles(map[string]string{
				"extensions/ext.anywhere.yaml": "id: ext.anywhere\nhandler: anywhere\n",
				"prices/anywhere.yaml":         prices("ext.anywhere", "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n"),
				"profiles/profile.any.yaml":    "id: profile.any\nversion: \"1.0.0\"\nextension: ext.anywhere\n" + common,
			}), func(b *bench) { b.profile = "profile.any" })
			b.fund()
			there := func(on string) (boxes, kept int) {
				v := vendor.At(filepath.Join(machines, on))
				objs, err := v.Objects()
				if err != nil {
					t.Fatal(err)
				}
				snaps, err := v.Snapshots()
				if err != nil {
					t.Fatal(err)
				}
				return len(objs), len(snaps)
			}
			source := b.create(engine.Request{Name: "source"})
			b.sh(source.Receipt, "printf kept >f")
			snap := b.keep(source, engine.SnapshotRequest{Name: "first", Retention: "30d"})
			o.Do, o.Name, o.Snapshot, o.Hosts, o.Anywhere = "create", "two", snap.ID, []string{far.Ref()}, machines
			env := ""
			if o.DieAt == 0 {
				env = failpointtest.Env + "=" + name + ":kill"
			}
			if _, stderr, code := b.run(o, env, 0); code != -1 {
				t.Fatalf("it was not killed: %d, %s", code, stderr)
			}
			e := b.reopen()
			s, err := e.Create(t.Context(), engine.Request{Profile: b.profile, Name: "two", TTL: "10m", FromSnapshot: snap.ID, Hosts: o.Hosts},
				nil, nil)
			if err != nil && strings.Contains(extensions.RemedyOf(err)+err.Error(), "import {") { // it was whole, and nobody was told
				s, err = e.Lookup(t.Context(), "", "", "two")
			}
			if err != nil {
				t.Fatalf("the next run: %s", told(err))
			}
			if got := b.sh(s.Receipt, "cat f"); got != "kept" {
				t.Errorf("the restored one reads %q", got)
			}
			if boxes, kept := there("far"); boxes != 1 || kept != 0 {
				t.Errorf("the other place has %d sandboxes and %d snapshots, want the one sandbox", boxes, kept)
			}
			if boxes, kept := there("this-machine"); boxes != 1 || kept != 1 {
				t.Errorf("the snapshot's place has %d sandboxes and %d snapshots, want one each", boxes, kept)
			}
			b.end(source, s)
			if _, err := b.DeleteSnapshot(t.Context(), snap, false); err != nil {
				t.Error(told(err))
			}
			for _, on := range []string{"far", "this-machine"} {
				if boxes, kept := there(on); boxes+kept != 0 {
					t.Errorf("%s is left with %d sandboxes and %d snapshots", on, boxes, kept)
				}
			}
			b.closed()
		})
	}
}
