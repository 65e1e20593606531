//go:build linux

package local

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// forkOf is the spec of a fork.
func forkOf(t testing.TB, of extensions.Spec, h extensions.Handle) extensions.Spec {
	t.Helper()
	spec := testSpec(t)
	spec.Isolation, spec.Network, spec.Resources, spec.Workspace = of.Isolation, of.Network, of.Resources, of.Workspace
	spec.Workspace.Source, spec.FromSandbox, spec.Source = nil, h.ID, h
	return spec
}

func TestKilledWhileForkingNothingIsLeftAndTheSourceGoesOn(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	h := provision(t, b, testSpec(t))
	shell(t, b, h, "head -c 32M /dev/zero >$HOME/big; (while :; do date +%s%N >beat; sleep 0.02; done) >/dev/null 2>&1 &")
	began := time.Now()
	whole := provision(t, b, forkOf(t, testSpec(t), h))
	span := time.Since(began)
	if r := shell(t, b, whole, "stat -c %s $HOME/big; test -e beat"); r.ExitCode != 0 || string(r.Stdout) != "33554432\n" {
		t.Fatalf("the fork: %s%s", r.Stdout, r.Stderr)
	}
	const rounds = 12
	for i := range rounds + len(createSteps) {
		id, die := testSpec(t).ID, ""
		if i >= rounds {
			die = createSteps[i-rounds]
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{driverEnv + "=fork", driverForkEnv + "=" + string(h.ID), driverStateEnv + "=" + filepath.Dir(b.settings.root),
			driverIDEnv + "=" + string(id), dieAtEnv + "=" + die, launcherEnv + "=" + testLauncher()}
		must(t, cmd.Start())
		if die == "" {
			time.Sleep(span * time.Duration(i) / rounds)
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait()
		if left, err := b.Find(t.Context(), id); err == nil {
			_, err = b.Teardown(t.Context(), left)
			must(t, err)
		} else if !extensions.IsKind(err, extensions.KindNotFound) {
			t.Fatal(err)
		}
		checkGone(t, b, id)
		last := ""
		eventually(t, soon, fmt.Sprint("the source goes on after the kill ", i), func() bool {
			was := last
			last = strings.TrimSpace(string(shell(t, b, h, "cat beat").Stdout))
			return was != "" && last != "" && last != was
		})
	}
}

// A fork that its disk cannot hold is refused as any other content is, and leaves nothing.
func TestAForkThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	h := provision(t, b, testSpec(t))
	shell(t, b, h, "head -c 40M /dev/urandom >big")
	spec, disk := forkOf(t, testSpec(t), h), int64(16)
	spec.Resources.DiskMB = &disk
	made, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindExhausted) || !made.IsZero() {
		t.Errorf("%s, %v", made.Encode(), err)
	}
	checkGone(t, b, spec.ID)
	if r := shell(t, b, h, "stat -c %s big"); string(r.Stdout) != "41943040\n" {
		t.Errorf("the source: %s%s", r.Stdout, r.Stderr)
	}
}

// A source that ends while it is copied leaves no fork.
func TestASourceThatEndsMeanwhileLeavesNoFork(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	h, _, err := b.Provision(t.Context(), testSpec(t))
	must(t, err)
	shell(t, b, h, "head -c 200M /dev/zero >big")
	spec := forkOf(t, testSpec(t), h)
	ended := make(chan error, 1)
	go func() {
		time.Sleep(200 * time.Millisecond)
		_, err := b.Teardown(context.Background(), h)
		ended <- err
	}()
	made, _, err := b.Provision(t.Context(), spec)
	must(t, <-ended)
	if err == nil { // it was whole before
		if r := shell(t, b, made, "stat -c %s big"); string(r.Stdout) != "209715200\n" {
			t.Errorf("the fork: %s%s", r.Stdout, r.Stderr)
		}
		_, err = b.Teardown(t.Context(), made)
		must(t, err)
	} else if !extensions.IsKind(err, extensions.KindNotFound) || !made.IsZero() {
		t.Errorf("%s, %v", made.Encode(), err)
	}
	checkGone(t, b, spec.ID)
}
