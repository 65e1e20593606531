//go:build linux

package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/stage"
)

// driverEnv makes the test binary do one thing as a process of its own, which
// a test can kill: "provision" or "teardown", with what drive reads.
const (
	driverEnv      = "SANDBOXER_TEST_DRIVER"
	driverStateEnv = "SANDBOXER_TEST_STATE"
	driverIDEnv    = "SANDBOXER_TEST_ID"
	driverLifeEnv  = "SANDBOXER_TEST_LIFE"
	driverForkEnv  = "SANDBOXER_TEST_FORK" // the id of what a "fork" forks
)

func drive(action string) {
	ctx := context.Background()
	opened, err := New().Open(ctx, extensions.Config{Binding: "ext.local", Account: "acme/web", StateDir: os.Getenv(driverStateEnv),
		Values: map[string]any{"launcher": testLauncher()}})
	if err == nil {
		b := opened.(*Backend)
		id := extensions.ID(os.Getenv(driverIDEnv))
		switch action {
		case "linger": // as a test that is killed
			if err = exttest.GuardFolder(os.Getenv(driverStateEnv)); err == nil {
				if _, _, err = b.Provision(ctx, drivenSpec(id, time.Minute)); err == nil {
					dieNow()
				}
			}
		case "replaced", "provision":
			if action == "replaced" {
				old, _ := os.Executable()
				_ = os.Remove(old)
			}
			life, _ := time.ParseDuration(os.Getenv(driverLifeEnv))
			_, _, err = b.Provision(ctx, drivenSpec(id, life))
		case "fork":
			spec := drivenSpec(id, time.Minute)
			spec.FromSandbox = extensions.ID(os.Getenv(driverForkEnv))
			spec.Source = b.settings.handle(record{ID: spec.FromSandbox})
			_, _, err = b.Provision(ctx, spec)
		default:
			_, err = b.Teardown(ctx, b.settings.handle(record{ID: id}))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

func drivenSpec(id extensions.ID, life time.Duration) extensions.Spec {
	now := time.Now()
	return extensions.Spec{ID: id, Account: "acme/web", Name: "driven", Generation: 1, CreatedAt: now, Deadline: now.Add(life),
		Isolation: extensions.IsolationProcess, Network: extensions.Network{Default: "deny"}, Instructions: "some",
		Secrets: map[string]extensions.Secret{"TOKEN": extensions.NewSecret(os.Getenv("SANDBOXER_TEST_SECRET"))}}
}

func driver(t *testing.T, action, state string, id extensions.ID, life time.Duration, dieAt string) error {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{driverEnv + "=" + action, driverStateEnv + "=" + state, driverIDEnv + "=" + string(id), driverLifeEnv + "=" +
		life.String(),
		dieAtEnv + "=" + dieAt, launcherEnv + "=" + testLauncher(), "SANDBOXER_TEST_SECRET=" + secretCanary}
	out, err := cmd.CombinedOutput()
	if len(out) > 0 {
		t.Logf("driver: %s", out)
	}
	return err
}

// processesOf lists living processes whose arguments name the sandbox.
func processesOf(id extensions.ID) []string {
	var found []string
	for _, p := range mustGlob("/proc/[0-9]*/cmdline") {
		b, _ := os.ReadFile(p)
		if strings.Contains(string(b), string(id)) {
			found = append(found, p+": "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}

func cgroupsOf(id extensions.ID) []string {
	var found []string
	for _, dir := range planCgroups(string(id)).paths() {
		if _, err := os.Stat(dir); err == nil {
			found = append(found, dir)
		}
	}
	return found
}

// soon bounds the waits for what happens at once, or within seconds, on a machine that is not busy.
const soon = time.Minute

// life is how long a sandbox lives whose end a test awaits: longer than its creation takes on a busy machine.
const life = 6 * time.Second

func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(within); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

func checkGone(t *testing.T, b *Backend, id extensions.ID) {
	t.Helper()
	eventually(t, soon, "no process is left", func() bool { return len(processesOf(id)) == 0 })
	if left := cgroupsOf(id); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Lstat(b.settings.box(id).dir); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	if _, err := b.Find(t.Context(), id); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("find after all: %v", err)
	}
}

var createSteps = []string{"recorded", "planned", "started", "registered", "launched", "filled"}

func TestKilledAtAnyStepOfCreateNothingIsLeftAfterTeardownByID(t *testing.T) {
	t.Parallel()
	for _, step := range createSteps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			b, id := openBackend(t, t.TempDir(), nil), testSpec(t).ID
			if err := driver(t, "provision", filepath.Dir(b.settings.root), id, time.Minute, step); err == nil {
				t.Fatal("the driver was not killed")
			}
			if step == "recorded" || step == "planned" || step == "started" {
				eventually(t, soon, "an init that was never recorded ends", func() bool { return len(processesOf(id)) == 0 })
			}
			h, err := b.Find(t.Context(), id)
			must(t, err)
			_, err = b.Teardown(t.Context(), h)
			must(t, err)
			checkGone(t, b, id)
		})
	}
}

func TestKilledAtAnyStepOfCreateTheNextOneConverges(t *testing.T) {
	t.Parallel()
	for _, step := range createSteps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			b, spec := openBackend(t, t.TempDir(), nil), testSpec(t)
			if err := driver(t, "provision", filepath.Dir(b.settings.root), spec.ID, time.Minute, step); err == nil {
				t.Fatal("the driver was not killed")
			}
			h := provision(t, b, spec)
			shell(t, b, h, "true")
			eventually(t, soon, "there is one init", func() bool { return initCount(spec.ID) == 1 })
			_, err := b.Teardown(t.Context(), h)
			must(t, err)
			checkGone(t, b, spec.ID)
		})
	}
}

func initCount(id extensions.ID) int {
	n := 0
	for _, p := range processesOf(id) {
		if !strings.Contains(p, "bwrap") && !strings.Contains(p, stage.Keeper) {
			n++
		}
	}
	return n
}

func TestKilledAtAnyStepOfTeardownTheNextOneFinishes(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"killed", "uncgrouped", "unfoldered"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			b, id := openBackend(t, t.TempDir(), nil), testSpec(t).ID
			state := filepath.Dir(b.settings.root)
			must(t, driver(t, "provision", state, id, time.Minute, ""))
			if err := driver(t, "teardown", state, id, time.Minute, step); err == nil {
				t.Fatal("the driver was not killed")
			}
			must(t, driver(t, "teardown", state, id, time.Minute, ""))
			checkGone(t, b, id)
		})
	}
}

func TestKilledAtRandomNothingIsLeftAfterTeardownByID(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	for i := range 30 {
		id := testSpec(t).ID
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{driverEnv + "=provision", driverStateEnv + "=" + filepath.Dir(b.settings.root), driverIDEnv + "=" + string(id),
			driverLifeEnv + "=1m", launcherEnv + "=" + testLauncher()}
		must(t, cmd.Start())
		time.Sleep(time.Duration(i*4) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		h, err := b.Find(t.Context(), id)
		if extensions.IsKind(err, extensions.KindNotFound) {
			eventually(t, soon, "no process is left", func() bool { return len(processesOf(id)) == 0 })
			continue
		}
		must(t, err)
		_, err = b.Teardown(t.Context(), h)
		must(t, err)
		checkGone(t, b, id)
	}
}

// A test that is killed, by its time limit too, leaves no sandbox for long.
func TestTheSandboxesOfAKilledTestAreEnded(t *testing.T) {
	t.Parallel()
	b, id := openBackend(t, t.TempDir(), nil), testSpec(t).ID
	if err := driver(t, "linger", filepath.Dir(b.settings.root), id, time.Minute, ""); err == nil {
		t.Fatal("the driver was not killed")
	}
	eventually(t, soon, "nothing is left of it", func() bool { return len(processesOf(id)) == 0 && !exists(b.settings.box(id).dir) })
	checkGone(t, b, id)
}

func TestASandboxOfADeadProcessEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	b, id := openBackend(t, t.TempDir(), nil), testSpec(t).ID
	must(t, driver(t, "provision", filepath.Dir(b.settings.root), id, life, ""))
	h, err := b.Find(t.Context(), id)
	must(t, err)
	// Programs that keep every CPU busy and ignore signals must not delay it.
	shell(t, b, h, "for i in 1 2 3 4 5 6; do (trap '' TERM HUP INT; while :; do :; done) >/dev/null 2>&1 & done")
	eventually(t, soon, "it is gone", func() bool { return len(processesOf(id)) == 0 })
	if left := cgroupsOf(id); len(left) > 0 {
		t.Errorf("its cgroups are left: %v", left)
	}
	all, err := b.Status(t.Context(), nil)
	must(t, err)
	if len(all) != 1 || all[0].Phase != extensions.PhaseExpired {
		t.Fatalf("observed: %+v", all)
	}
	o := all[0]
	if late := o.EndedAt.Sub(o.Deadline); late < 0 || late > 5*time.Second || o.StartedAt.IsZero() {
		t.Errorf("started %s, deadline %s, ended %s", o.StartedAt, o.Deadline, o.EndedAt)
	}
	if _, err := b.Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"true"}}); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("exec in an expired sandbox: %v", err)
	}
	r, err := b.Teardown(t.Context(), h)
	must(t, err)
	if !r.EndedAt.Equal(o.EndedAt) {
		t.Errorf("the report says it ended at %s, not at %s", r.EndedAt, o.EndedAt)
	}
	checkGone(t, b, id)
}

func TestAKilledInitIsAFailureAndEndsEverything(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	spec := testSpec(t)
	h := provision(t, b, spec)
	shell(t, b, h, "setsid sleep 1000 >/dev/null 2>&1 & true")
	rec, err := b.settings.box(spec.ID).read()
	must(t, err)
	must(t, rec.Init.kill(t.Context()))
	eventually(t, soon, "its cgroups are gone", func() bool { return len(cgroupsOf(spec.ID)) == 0 && len(processesOf(spec.ID)) == 0 })
	o, err := b.Status(t.Context(), []extensions.Handle{h})
	must(t, err)
	if o[0].Phase != extensions.PhaseFailed || o[0].Reason == "" {
		t.Errorf("observed %+v", o[0])
	}
}

func TestAfterARestartOfTheMachineNothingCountsAsAlive(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	self, err := identify(os.Getpid())
	must(t, err)
	self.BootID = "another boot"
	for life, want := range map[time.Duration]extensions.Phase{time.Hour: extensions.PhaseFailed, -time.Hour: extensions.PhaseExpired} {
		spec := testSpec(t)
		bx := b.settings.box(spec.ID)
		must(t, os.MkdirAll(bx.dir, 0o700))
		must(t, bx.write(record{Account: "acme/web", State: stateReady, Init: self, Deadline: time.Now().Add(life)}))
		o, err := b.Status(t.Context(), []extensions.Handle{b.settings.handle(record{ID: spec.ID})})
		must(t, err)
		if o[0].Phase != want || o[0].EndedAt.IsZero() || o[0].EndedAt.After(time.Now()) {
			t.Errorf("deadline in %s: %+v", life, o[0])
		}
		_, err = b.Teardown(t.Context(), o[0].Handle)
		must(t, err)
	}
}
