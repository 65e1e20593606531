//go:build unix

package composessh

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// Under default deny no Dockerfile makes the daemon ask the host's own services.
func TestADeniedBuildFetchesNothing(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }), ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = web.Serve(l) }()
	t.Cleanup(func() { _ = web.Close(); <-done })
	marks := newBuilder(t)
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t, func(sp *extensions.Spec) {
		sp.Network = extensions.Network{Default: "deny"}
		sp.Compose = &extensions.Compose{Files: []string{"compose.yaml"}}
		sp.Workspace.Source = newFolder(t, map[string]string{
			"compose.yaml":   `services: {web: {build: {context: ./app, network: none, args: {WORD: "exfil"}}, command: ["sleep", "1000"]}}`,
			"app/Dockerfile": marks.from("") + "ARG WORD\nADD http://" + l.Addr().String() + "/latest/meta?$WORD /stolen\n",
		})
	})
	h, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "build-fetch") || !h.IsZero() {
		t.Errorf("provision: %v", err)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the daemon asked %d times", n)
	}
}

// What a step may use is bounded, in every shell.
func TestStepsOfBuildsAreBounded(t *testing.T) {
	t.Parallel()
	for name, shell := range buildShells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(t, shell...)
			b.box("sbx-a", map[string]string{"Dockerfile": b.from("") +
				"RUN { cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/cpu/cpu.cfs_quota_us || { cat /sys/fs/cgroup/memory.max; cut " +
				"-d ' ' -f 1 /sys/fs/cgroup/cpu.max; }; ulimit -n; } >/limits 2>/dev/null\n" +
				"RUN i=0; while { read x </sys/fs/cgroup/pids/pids.max || read x </sys/fs/cgroup/pids.max; } 2>/dev/null; " +
				"[ $x = max ] && [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done; echo $x >/count; " + // a busy host bounds a step late
				"(i=0; while [ $i -lt 300 ]; do sleep 60 & i=$((i+1)); done; echo >/all) 2>/dev/null; [ ! -e /all ]\n"})
			r := b.one(compose.Build{MemoryBytes: 64 << 20, MilliCPU: 500, Pids: 32})
			if got := b.build("sbx-a", r); got != "built" {
				t.Fatal(got)
			}
			out := b.docker("run", "--rm", "--network", "none", r.Builds[0].Tag, "cat", "/limits", "/count")
			if want := "67108864\n50000\n4096\n32"; out != want {
				t.Errorf("the steps had %q, want %q", out, want)
			}
			if got := b.release("sbx-a"); got != "released:" {
				t.Error(got)
			}
			if left, _ := filepath.Glob(filepath.Join(b.root, "sbx-a", "steps*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A build that goes on for too long ends, and its container with it.
func TestABuildEndsInTime(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	b.box("sbx-a", map[string]string{"Dockerfile": b.from("") + "RUN sleep 600\n"})
	got := b.do("sbx-a", "read_clock; started=$uptime limit=4\nbuild_images\nanswer built", b.one(compose.Build{Pids: 32}), false)
	if !strings.Contains(got, `"kind":"timeout"`) {
		t.Error(got)
	}
	if !waitFor(func() bool { return b.docker("ps", "--all", "--quiet", "--filter", "label=test.run="+b.run) == "" }) {
		t.Fatal("a container of the build goes on")
	}
	b.release("sbx-a")
}

// An image that merely has the name, or the label too, is not what was built.
func TestASquattedImageIsNotTrusted(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	r := b.one(compose.Build{})
	tag, digest := r.Builds[0].Tag, r.Builds[0].Digest
	squat := t.TempDir()
	if err := os.WriteFile(filepath.Join(squat, "Dockerfile"), []byte(b.from("")+"RUN echo squatted >/origin\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	took := func() {
		b.docker("build", "--quiet", "--network", "none", "--label", "sandboxer.build="+digest, "--tag", tag, squat)
		if got := b.docker("run", "--rm", "--network", "none", tag, "cat", "/origin"); got != "squatted" {
			t.Fatalf("the test proves nothing: %s", got)
		}
	}
	b.box("sbx-a", map[string]string{"Dockerfile": b.from("") + "RUN echo genuine >/origin\n"})
	for range 2 {
		took()
		squatted := b.docker("image", "inspect", "--format", "{{.Id}}", tag)
		if got := b.build("sbx-a", r); got != "built" {
			t.Fatal(got)
		}
		if got := b.docker("run", "--rm", "--network", "none", tag, "cat", "/origin"); got != "genuine" {
			t.Errorf("the sandbox would run: %s", got)
		}
		b.docker("image", "rm", "--force", squatted)
	}
	b.release("sbx-a")
}

// What the image to build on orders, or claims, is seen before anything is built.
func TestBasesThatOrderOrClaimAreRefused(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	for what, change := range map[string]string{
		"onbuild": "ONBUILD ADD http://127.0.0.1:1/ /x", "owner": "LABEL sandboxer.id=sbx-victim", "account": "LABEL sandboxer.account=evil",
		"project": "LABEL com.docker.compose.project=sbx-victim",
	} {
		base := "localhost/" + b.run + ":" + what
		import_ := exec.CommandContext(context.Background(), "docker", "import", "--change", "LABEL test.run="+b.run, "--change", change, "-",
			base)
		import_.Stdin = strings.NewReader(strings.Repeat("\x00", 1024))
		if out, err := import_.CombinedOutput(); err != nil {
			t.Fatalf("%s: %s", what, out)
		}
		id := "sbx-" + what
		b.box(id, map[string]string{"Dockerfile": "FROM " + base + "\nENV a=b\n"})
		if got := b.build(id, b.one(compose.Build{Bases: []compose.Base{{Image: base}}})); !strings.Contains(got, `"kind":"invalid"`) ||
			!strings.Contains(got, base) {
			t.Errorf("%s: %s", what, got)
		}
		b.release(id)
		if what != "onbuild" {
			if got := b.build("sbx-p", compose.Rendered{Pulls: []compose.Pull{{Image: base}}}); !strings.Contains(got, `"kind":"invalid"`) {
				t.Errorf("%s: a service runs it: %s", what, got)
			}
		}
		b.docker("image", "rm", "--force", base)
	}
	b.box("sbx-m", map[string]string{"Dockerfile": b.from("")})
	got := b.build("sbx-m", b.one(compose.Build{Bases: []compose.Base{{Image: b.base}, {Image: "localhost:1/x:1", Platform: "linux/amd64"}}}))
	if !strings.Contains(got, `"kind":"unavailable"`) {
		t.Errorf("a base that nobody has: %s", got)
	}
	b.release("sbx-m")
}

// A release waits as long as it was told, loses nothing, and never waits for
// an image that is none of its own.
func TestAReleaseDoesNotWaitForABuild(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	r := b.one(compose.Build{})
	digest := r.Builds[0].Digest
	b.box("sbx-a", map[string]string{"Dockerfile": b.from("")})
	if got := b.build("sbx-a", r); got != "built" {
		t.Fatal(got)
	}
	const release = `image_lock_wait=1; release_images; code=$?; manifest_get images; answer "$code:$value:$warnings"`
	hold := func(name string) func() {
		cmd := exec.CommandContext(context.Background(), "flock", filepath.Join(b.root, "images", name+".lock"), "sh", "-c",
			"echo held; exec sleep 600")
		ownGroup(cmd)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			_, err = out.Read(make([]byte, 5))
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() { killGroup(cmd); _ = cmd.Wait() }
	}
	end := hold(digest)
	if got := b.do("sbx-a", release, compose.Rendered{}, false); got != "1:"+digest+":" {
		t.Errorf("released while it is built: %q", got)
	}
	if len(b.images()) == 0 {
		t.Error("the image went")
	}
	end()
	end = hold(strings.Repeat("e", 64))
	if got := b.do("sbx-a", release, compose.Rendered{}, false); got != "0::" {
		t.Errorf("released: %q", got)
	}
	end()
}
