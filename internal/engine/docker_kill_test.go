package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/docker"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

const dockerProfile = "profile.docker-test"

// onDocker makes this machine's Docker a place, for an account that nobody else has there.
func onDocker(t *testing.T) *bench {
	t.Helper()
	startsProcesses(t)
	image := hosttest.Image(t)
	b := newBench(t, func(b *bench) {
		b.account = fmt.Sprintf("acme/docker-%d-%d", os.Getpid(), time.Now().UnixNano())
		b.Account, b.Extensions, b.profile = b.account, append(all(), docker.New()), dockerProfile
	}, onFiles(map[string]string{"profiles/" + dockerProfile + ".yaml": "id: " + dockerProfile + "\nversion: \"1.0.0\"\nextension: ext.docker\n" +
		"image: { pull: " + image + " }\n" + contained}))
	b.fund()
	return b
}

// inDocker lists what the engine has of the account: containers, networks and images.
func (b *bench) inDocker() []string {
	b.t.Helper()
	var all []string
	for _, args := range [][]string{{"container", "ls", "--all"}, {"network", "ls"}, {"image", "ls"}} {
		args = append(args, "--format", "{{json .}}", "--filter", "label="+extensions.LabelAccount+"="+b.account)
		out, err := exec.Command("docker", args...).Output()
		if err != nil {
			b.t.Fatal(err)
		}
		if text := strings.TrimSpace(string(out)); text != "" {
			all = append(all, strings.Split(text, "\n")...)
		}
	}
	return all
}

func TestAKillAtAnyStepInDockerConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	b := onDocker(t)
	for i, point := range failpointtest.Names("engine.create.") {
		name := fmt.Sprint("one-", i)
		if _, stderr, code := b.run(order{Do: "create", Name: name}, failpointtest.Env+"="+point+":kill", 0); code == 0 || strings.Contains(stderr, "panic") {
			t.Fatalf("%s: exit code %d: %s", point, code, stderr)
		}
		b.endsAlone(point, b.converge(dockerProfile, name))
	}
	for i, point := range failpointtest.Names("engine.destroy.") {
		rec := b.converge(dockerProfile, fmt.Sprint("two-", i))
		b.killed(order{Do: "destroy", Receipt: rec}, point)
		b.ends(point, rec)
	}
	b.accounted()
	b.clean()
}

// endsAlone proves that a sandbox is the only one, and destroys it.
func (b *bench) endsAlone(at string, rec engine.Receipt) {
	b.t.Helper()
	if left := b.inDocker(); len(left) != 1 {
		b.t.Errorf("%s: there is %q, want the container of %s alone", at, left, rec.ID)
	}
	b.ends(at, rec)
}

func (b *bench) ends(at string, rec engine.Receipt) {
	b.t.Helper()
	if _, err := b.again(order{Do: "destroy", Receipt: rec}); err != nil {
		b.t.Errorf("%s: the next destroy: %v", at, err)
	}
	if left := b.inDocker(); len(left) != 0 {
		b.t.Errorf("%s: left behind: %q", at, left)
	}
}

func TestAKillAtAnyMomentInDockerConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	b := onDocker(t)
	start := time.Now()
	rec, stderr, code := b.run(order{Do: "create", Name: "one"}, "", 0)
	span := time.Since(start)
	if code != 0 {
		t.Fatal(stderr)
	}
	b.endsAlone("nothing", rec)
	const rounds = 8
	for i := range rounds {
		after := span * time.Duration(i+1) / rounds
		b.run(order{Do: "create", Name: "one"}, "", after)
		rec := b.converge(dockerProfile, "one")
		if left := b.inDocker(); len(left) != 1 {
			t.Fatalf("killed after %s: there is %q", after, left)
		}
		b.run(order{Do: "destroy", Receipt: rec}, "", after/2)
		b.ends(fmt.Sprint("a destroy after ", after/2), rec)
	}
	b.accounted()
	b.clean()
}

func TestASnapshotKilledInDockerLeavesItsSourceRunning(t *testing.T) {
	t.Parallel()
	b := onDocker(t)
	rec := b.converge(dockerProfile, "one")
	start := time.Now()
	b.run(order{Do: "snapshot", Receipt: rec}, "", 0)
	span := time.Since(start)
	t.Cleanup(func() {
		for _, name := range copies(t, b, "") {
			_ = exec.Command("docker", "image", "rm", name).Run()
		}
	})
	if n := len(copies(t, b, "")); n == 0 {
		t.Fatal("a snapshot left nothing in Docker")
	}
	for i := range 6 {
		after := span * time.Duration(i+1) / 6
		b.run(order{Do: "snapshot", Receipt: rec}, "", after)
		if _, stderr, code := b.run(order{Do: "sweep"}, "", 0); code != 0 {
			t.Errorf("killed after %s: %s", after, stderr)
		}
		got, err := b.reopen().Get(context.Background(), rec)
		if err != nil || got.State != "ready" || got.Mode != string(engine.Running) {
			t.Errorf("killed after %s: %s %s, %v", after, got.State, got.Mode, err)
		}
		if left := copies(t, b, ".of-"+string(rec.ID)); len(left) > 0 {
			t.Errorf("killed after %s: left %q", after, left)
		}
		if r, err := b.reopen().Exec(context.Background(), rec, extensions.ExecRequest{Command: []string{"true"}}); err != nil || r.ExitCode != 0 {
			t.Errorf("killed after %s: %v", after, err)
		}
	}
	if _, stderr, code := b.run(order{Do: "snapshot", Receipt: rec}, "", 0); code != 0 { // it removes what Docker finished late
		t.Fatal(stderr)
	}
	whole := copies(t, b, ".whole.")
	for _, name := range copies(t, b, ".c0") {
		if !slices.ContainsFunc(whole, func(w string) bool { return strings.HasPrefix(w, strings.TrimSuffix(name, "c0")) }) {
			t.Errorf("left %s", name)
		}
	}
	if _, err := b.again(order{Do: "destroy", Receipt: rec}); err != nil {
		t.Error(err)
	}
	b.accounted()
	b.clean()
}

// copies lists the names of the images that copies of the account's sandboxes have, as far as they have word in them.
func copies(t *testing.T, b *bench, word string) (names []string) {
	t.Helper()
	args := []string{"image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "reference=" + "sandboxer.invalid/copy" + ":*" + word + "*"}
	if !strings.HasPrefix(word, ".of-") {
		args = append(args, "--filter", "label="+extensions.LabelAccount+"="+b.account)
	}
	out, err := exec.Command("docker", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
