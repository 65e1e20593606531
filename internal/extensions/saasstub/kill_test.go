package saasstub_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
)

// victimEnv names the vendor's folder for the process that is to be killed.
const victimEnv = "SANDBOXER_TEST_VICTIM_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimEnv); dir != "" {
		live(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// live makes and ends sandboxes until the process is killed.
func live(dir string) {
	ctx := context.Background()
	cfg := extensions.Config{Binding: "ext.stub", Account: "acme/web", Values: map[string]any{"dir": dir}}
	b, err := saasstub.New().Open(ctx, cfg)
	for n := 0; err == nil; n++ {
		id, _ := extensions.NewID(nil)
		spec := extensions.Spec{ID: id, Generation: 1, Account: cfg.Account, Deadline: time.Now().Add(time.Hour), Instructions: "live",
			Env: map[string]string{"A": "b"}}
		var h extensions.Handle
		if h, _, err = b.Provision(ctx, spec); err != nil {
			break
		}
		snap, _ := extensions.NewSnapshotID(nil)
		if _, err = b.(extensions.Snapshotter).Snapshot(ctx, h, extensions.SnapshotSpec{ID: snap}); err == nil && n%2 == 0 {
			_, err = b.Teardown(ctx, h)
		}
		_, _ = os.Stdout.WriteString(".")
	}
	_, _ = os.Stderr.WriteString(err.Error())
}

func TestAKilledProcessLeavesAVendorThatWorks(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	b, cfg := opened(t, saasstub.New())
	for round := range 8 {
		var errs bytes.Buffer
		victim := exec.Command(self)
		victim.Env = append(os.Environ(), victimEnv+"="+dirOf(cfg))
		victim.Stderr = &errs
		out, err := victim.StdoutPipe()
		must(t, err)
		must(t, victim.Start())
		_, err = out.Read(make([]byte, 1)) // it is at work
		time.Sleep(time.Duration(round*3) * time.Millisecond)
		_ = victim.Process.Kill()
		_ = victim.Wait()
		must(t, err)
		if errs.Len() > 0 {
			t.Fatalf("round %d: %s", round, errs.String())
		}
	}
	all, err := b.Status(t.Context(), nil)
	must(t, err)
	if len(all) == 0 {
		t.Fatal("no sandbox survived the processes that made them")
	}
	for _, o := range all {
		_, err := b.Teardown(t.Context(), o.Handle)
		must(t, err)
	}
	for _, f := range residue(t, cfg) {
		if matched := len(f) > len("snapshots/") && f[:len("snapshots/")] == "snapshots/"; !matched {
			t.Errorf("left behind: %s", f)
		}
	}
}
