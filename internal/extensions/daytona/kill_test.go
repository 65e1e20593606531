package daytona_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// task is a verb on a handle, "" = a create.
type task struct {
	API, Key      string
	Class         string
	Disk          int64 // MiB that are asked for; 0 = what comes
	ID            extensions.ID
	Made          time.Time // when it was first asked for
	Verb          string
	Handle, Taken string // of the sandbox, and of a snapshot in JSON
	Snapshot      string // its id
}

func TestMain(m *testing.M) {
	if !vendortest.Victim(task.work) {
		goleak.VerifyTestMain(m)
	}
}

func (w task) config() extensions.Config {
	values := map[string]any{"api_url": w.API}
	if w.Class != "" {
		values["class"], values["snapshot"] = w.Class, daytonatest.VMSnapshot
	}
	return extensions.Config{Binding: "ext.daytona", Account: "acme/web", Values: values,
		Credentials: map[string]extensions.Secret{"api_key": extensions.NewSecret(w.Key)}}
}

// spec is the same in every process.
func (w task) spec() extensions.Spec {
	s := extensions.Spec{ID: w.ID, Account: "acme/web", Generation: 1, CreatedAt: w.Made, Deadline: w.Made.Add(20 * time.Minute),
		Network: extensions.Network{Default: "deny"}, Instructions: "whole", Env: map[string]string{"A": "whole"},
		Workspace: extensions.Workspace{Mode: extensions.WorkspaceRemoteCanonical, Access: extensions.AccessRW}}
	if w.Disk > 0 { // it is stopped for that, and started again
		s.Resources.DiskMB = &w.Disk
	}
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
	b, spec := must1(daytona.New().Open(ctx, w.config())), w.spec()
	h := must1(extensions.DecodeHandle(w.Handle))
	switch w.Verb {
	case "end":
		_ = must1(b.Teardown(ctx, h))
		return
	case "pause":
		_ = must1(b.(extensions.Pauser).Pause(ctx, h))
		_ = must1(b.(extensions.Pauser).Resume(ctx, h, spec.Deadline))
		return
	case "snapshot":
		_ = must1(b.(extensions.Snapshotter).Snapshot(ctx, h, extensions.SnapshotSpec{ID: w.Snapshot, Account: "acme/web"}))
		return
	case "drop":
		var s extensions.SnapshotHandle
		must2(json.Unmarshal([]byte(w.Taken), &s))
		must2(b.(extensions.Snapshotter).DeleteSnapshot(ctx, s))
		return
	case "fork":
		spec = w.fork(h)
	}
	h, _, err := b.Provision(ctx, spec)
	must2(err)
	_ = must1(b.WaitReady(ctx, spec, h))
}

// fork is the same in every process.
func (w task) fork(of extensions.Handle) extensions.Spec {
	s := w.spec()
	s.FromSandbox, s.Source = of.ID, of
	s.Labels = exttest.Labels(s)
	return s
}

func must2(err error) {
	if err != nil {
		panic(err)
	}
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
		w.Verb, w.Handle = "end", h.Encode()
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
		w := task{API: k.APIURL, Key: v.Key, ID: must1(extensions.NewID(nil)), Made: time.Now().UTC(), Disk: 10240}
		killed = k.Run(t, w, n, true)
		if made := len(v.Sandboxes()); made > 1 {
			t.Fatalf("killed after request %d: %d sandboxes", n, made)
		}
		h, _, err := b.Provision(t.Context(), w.spec())
		must(t, err)
		o, err := b.WaitReady(t.Context(), w.spec(), h)
		if must(t, err); *o.Allocated.DiskMB != w.Disk {
			t.Errorf("after a kill after request %d it has a disk of %d MiB", n, *o.Allocated.DiskMB)
		}
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

// The verbs of a sandbox that runs: wherever a process is killed in one, the next run finishes it, and nothing is there twice.
func TestAKillInAPauseOrASnapshotLosesNothing(t *testing.T) {
	t.Parallel()
	v := daytonatest.Start(t)
	k := v.Killer(t)
	cfg, b := openFor(t, v, nil)
	spec, h := made(t, cfg, b)
	p, snapshots := b.(extensions.Pauser), b.(extensions.Snapshotter)
	sh(t, b, h, "printf kept >f")
	back := func(when string, n int64) {
		t.Helper()
		_, err := p.Resume(t.Context(), h, spec.Deadline)
		must(t, err)
		if got := sh(t, b, h, "cat f"); got != "kept" || len(v.Sandboxes()) != 1 {
			t.Fatalf("killed after request %d of %s: %q, %d sandboxes", n, when, got, len(v.Sandboxes()))
		}
	}
	w := task{API: k.APIURL, Key: v.Key, ID: spec.ID, Made: spec.CreatedAt, Verb: "pause", Handle: h.Encode()}
	n := int64(1)
	for killed := true; killed; n++ {
		killed = k.Run(t, w, n, true)
		if n%2 == 0 {
			paused(t, b, h)
		}
		back("a pause", n)
	}
	if n < 8 {
		t.Errorf("a pause and a resume make only %d requests", n)
	}
	n = 1
	for killed := true; killed; n++ {
		w.Verb, w.Snapshot = "snapshot", must1(extensions.NewSnapshotID(nil))
		killed = k.Run(t, w, n, true)
		s, err := snapshots.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: w.Snapshot, Account: "acme/web"})
		must(t, err)
		found, err := snapshots.FindSnapshot(t.Context(), w.Snapshot)
		if must(t, err); found.Handle.Ref != s.Handle.Ref || len(v.Snapshots()) != 1 {
			t.Fatalf("killed after request %d of a snapshot: %v", n, v.Snapshots())
		}
		if text, err := json.Marshal(s.Handle); err == nil {
			k.Run(t, task{API: k.APIURL, Key: v.Key, Verb: "drop", Taken: string(text)}, n%4+1, true)
		}
		must(t, snapshots.DeleteSnapshot(t.Context(), s.Handle))
		if left := v.Snapshots(); len(left) > 0 {
			t.Fatalf("killed in a delete: %v are left", left)
		}
		back("a snapshot", n)
	}
	if n < 8 {
		t.Errorf("a snapshot makes only %d requests", n)
	}
}

// Of a fork that was cut off anywhere, the next run finds what is there: it completes it, or ends it and all that was made for it.
func TestAKillInAForkLeavesNothing(t *testing.T) {
	t.Parallel()
	v := daytonatest.Start(t)
	k := v.Killer(t)
	w := task{API: k.APIURL, Key: v.Key, Class: "linux-vm", Made: time.Now().UTC(), Verb: "fork"}
	b := must1(daytona.New().Open(t.Context(), task{API: v.APIURL, Key: v.Key, Class: "linux-vm"}.config()))
	defer func() { must(t, b.Close()) }()
	_, h := made(t, w.config(), b)
	w.Handle = h.Encode()
	n := int64(1)
	for killed := true; killed; n++ {
		w.ID = must1(extensions.NewID(nil))
		killed = k.Run(t, w, n, true)
		found, err := b.Find(t.Context(), w.ID)
		if n%2 == 0 && !extensions.IsKind(err, extensions.KindNotFound) {
			must(t, err)
		} else {
			found, _, err = b.Provision(t.Context(), w.fork(h))
			must(t, err)
			_, err = b.WaitReady(t.Context(), w.fork(h), found)
			if must(t, err); len(v.Sandboxes()) != 2 || len(v.Snapshots()) != 1 {
				t.Fatalf("killed after request %d of a fork: %d sandboxes, %v", n, len(v.Sandboxes()), v.Snapshots())
			}
		}
		_, err = b.Teardown(t.Context(), found)
		if must(t, err); len(v.Sandboxes()) != 1 || len(v.Snapshots()) != 0 {
			t.Fatalf("killed after request %d of a fork: %d sandboxes and %v are left", n, len(v.Sandboxes()), v.Snapshots())
		}
	}
	if n < 15 {
		t.Errorf("a fork makes only %d requests", n)
	}
}
