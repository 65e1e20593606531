package engine_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// named lists the account's containers, networks, images and copies in Docker, by their names.
func (b *bench) named() []string {
	b.t.Helper()
	var all []string
	for kind, format := range map[string]string{"container": "{{.Names}}", "network": "{{.Name}}", "image": "{{.Repository}}:{{.Tag}} {{.ID}}"} {
		args := []string{kind, "ls", "--format", format, "--filter", "label=" + extensions.LabelAccount + "=" + b.account}
		if kind != "network" {
			args = append(args, "--all")
		}
		out, err := exec.Command("docker", args...).Output()
		if err != nil {
			b.t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			all = append(all, kind+" "+strings.TrimSpace(line))
		}
	}
	slices.Sort(all)
	return all
}

// kept is a running sandbox in Docker with a file and a snapshot of it.
func (b *bench) kept() (engine.Receipt, engine.SnapshotView) {
	b.t.Helper()
	rec := b.converge(dockerProfile, "source")
	b.sh(rec, "echo kept >f")
	s, err := b.reopen().Get(context.Background(), rec)
	if err != nil {
		b.t.Fatal(told(err))
	}
	return rec, b.keep(s, engine.SnapshotRequest{Name: "first", Retention: "30d"})
}

// over ends the source and deletes its snapshots. Nothing may be left, in Docker or on the books.
func (b *bench) over(source engine.Receipt) {
	b.t.Helper()
	e := b.reopen()
	all, err := e.Snapshots(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(told(err))
	}
	for _, snap := range all {
		if _, err := e.DeleteSnapshot(b.t.Context(), snap, false); err != nil {
			b.t.Error(told(err))
		}
	}
	if _, err := e.Destroy(b.t.Context(), source, engine.DestroyOptions{}); err != nil {
		b.t.Error(told(err))
	}
	if left := b.named(); len(left) != 0 {
		b.t.Errorf("left behind: %q", left)
	}
	b.accounted()
	b.closed()
}

// A restore and a fork that die at any step are made once by the next run, of the same files, and leave nothing.
func TestAKillAtAnyStepOfACopysCreateInDockerConverges(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"restore", "fork"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := onDocker(t)
			source, snap := b.kept()
			before := b.named()
			for i, point := range failpointtest.Names("engine.create.") {
				o := order{Do: "create", Name: fmt.Sprint("one-", i), Profile: dockerProfile, Snapshot: snap.ID}
				if what == "fork" {
					o.Snapshot, o.Fork = "", source.ID
				}
				b.killed(o, point)
				rec := b.convergeTo(o)
				if got := b.sh(rec, "cat f"); got != "kept\n" {
					t.Errorf("%s: it reads %q", point, got)
				}
				if there := b.left(); len(there) != 2 {
					t.Errorf("%s: there are %v, want %s and %s", point, there, source.ID, rec.ID)
				}
				if _, err := b.again(order{Do: "destroy", Receipt: rec}); err != nil {
					t.Errorf("%s: %s", point, told(err))
				}
				if after := b.named(); !slices.Equal(after, before) {
					t.Errorf("%s: there is %q, before it was %q", point, after, before)
				}
			}
			b.over(source)
		})
	}
}

// A sandbox whose snapshot, pause or resume dies at any step runs on, and what the ledger says of it is so.
func TestAKillAtAnyStepOfAChangeInDockerConverges(t *testing.T) {
	t.Parallel()
	b := onDocker(t)
	source, snap := b.kept()
	swept := func(point string) {
		t.Helper()
		if _, stderr, code := b.run(order{Do: "sweep"}, "", 0); code != 0 {
			t.Errorf("%s: the next run: %s", point, stderr)
		}
	}
	for _, point := range failpointtest.Names("engine.snapshot.") {
		b.killed(order{Do: "snapshot", Receipt: source}, point)
		swept(point)
		if got := b.sh(source, "cat f"); got != "kept\n" {
			t.Errorf("%s: the source reads %q", point, got)
		}
	}
	for _, point := range failpointtest.Names("engine.unkeep.") {
		b.killed(order{Do: "unkeep", Snapshot: snap.ID}, point)
		swept(point)
		if got, err := b.reopen().LookupSnapshot(t.Context(), snap.ID); err == nil && got.State == "ready" {
			t.Errorf("%s: the snapshot is kept", point)
		}
		snap = b.keep(b.now(source), engine.SnapshotRequest{Name: "again", Retention: "30d"})
	}
	for _, point := range failpointtest.Names("engine.mode.") {
		for _, do := range []string{"pause", "resume"} {
			b.killed(order{Do: do, Receipt: source}, point)
			swept(point)
			for _, o := range b.observations() {
				if mode := b.now(source).Mode; (mode == string(engine.Paused)) != (o.Phase == extensions.PhasePaused) {
					t.Errorf("%s of %s: it is %s, the ledger says %s", point, do, o.Phase, mode)
				}
			}
			if _, stderr, code := b.run(order{Do: do, Receipt: source}, "", 0); code != 0 {
				t.Errorf("%s: %s again: %s", point, do, stderr)
			}
		}
	}
	for _, point := range remakePoints {
		b.remakeKilled(point, source)
		if _, err := b.again(order{Do: "destroy", Receipt: source}); err != nil {
			t.Errorf("%s: %s", point, told(err))
		}
		source = b.converge(dockerProfile, "source")
	}
	b.over(source)
}

// now is a sandbox as the next run sees it.
func (b *bench) now(rec engine.Receipt) engine.Sandbox {
	b.t.Helper()
	s, err := b.reopen().Get(b.t.Context(), rec)
	if err != nil {
		b.t.Fatal(told(err))
	}
	return s
}
