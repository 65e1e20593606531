package composessh

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// manifest is the record of a sandbox as it is on the host.
func (s *site) manifest(t testing.TB, id extensions.ID) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.root, string(id), "manifest"))
	must(t, err)
	return string(b)
}

// expired reports whether the host has recorded that a sandbox ended by its deadline.
func (s *site) expired(id extensions.ID) bool {
	b, _ := os.ReadFile(filepath.Join(s.root, string(id), "manifest")) // there may be none yet
	return strings.Contains(string(b), "state=expired")
}

// overdue has the host find that a sandbox's time is up.
func (s *site) overdue(t testing.TB, id extensions.ID) {
	t.Helper()
	s.edit(t, id, "lease", "end", "1")
}

// endSoon moves the end of a sandbox that is ready close to now: however long a busy
// machine took to make it, it has all of the time that is left then.
func (s *site) endSoon(t testing.TB, b *Backend, spec *extensions.Spec) {
	t.Helper()
	spec.Deadline = time.Now().Add(10 * time.Second)
	must(t, b.Extend(t.Context(), b.handle(spec.ID), spec.Deadline))
}

// runs reports whether docker runs anything of a sandbox, and gone whether it holds nothing.
func runs(t testing.TB, id extensions.ID) bool {
	t.Helper()
	return docker(t, "ps", "-q", "--filter", "label=sandboxer.id="+string(id)) != ""
}

func gone(t testing.TB, id extensions.ID) bool {
	t.Helper()
	return docker(t, "ps", "-aq", "--filter", "label=sandboxer.id="+string(id)) == ""
}

// goneSoon wants docker to run nothing of a sandbox whose time is up.
func goneSoon(t testing.TB, id extensions.ID) {
	t.Helper()
	if !waitFor(func() bool { return !runs(t, id) }) {
		t.Errorf("%s is still there", id)
	}
}

// An image that somebody builds for long is no reason for anything to outlive
// its deadline.
func TestASlowBuildHoldsNoEndUp(t *testing.T) {
	t.Parallel()
	marks := newBuilder(t)
	s := newSite(t)
	b := s.open(t)
	building := func() extensions.Spec {
		return s.spec(t, exttest.With(func(sp *extensions.Spec) {
			sp.Image = &extensions.Image{Build: &extensions.BuildStage{Context: "."}}
			sp.Workspace.Source = newFolder(t, map[string]string{"Dockerfile": marks.from("") + "RUN sleep 300\n"})
		}))
	}
	victim := s.spec(t)
	s.provision(t, b, victim)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(cancel)
	first, second := building(), building()
	start := func(spec extensions.Spec, started func() bool) {
		s.tearDownAtEnd(t, spec.ID)
		wg.Go(func() { _, _, _ = b.Provision(ctx, spec) })
		if !waitFor(started) {
			t.Fatal("nothing is built")
		}
	}
	start(first, func() bool { return docker(t, "ps", "-q", "--filter", "label=test.run="+marks.run) != "" })
	start(second, func() bool {
		_, err := os.Stat(filepath.Join(s.root, string(second.ID), "lease"))
		return err == nil
	})
	s.overdue(t, second.ID)
	s.overdue(t, victim.ID)
	if !waitFor(func() bool { return s.expired(second.ID) }) {
		t.Error("the one that waits for the image has not ended")
	}
	goneSoon(t, victim.ID)
	if runs(t, first.ID) {
		t.Error("the build was no build")
	}
}

// A docker command that never comes back ends one try, and no other sandbox
// waits for it.
func TestADockerThatHangsForOneHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	dir := t.TempDir()
	hang := filepath.Join(dir, "hang")
	must(t, os.WriteFile(filepath.Join(dir, "docker"),
		[]byte("#!/bin/sh\nid=$(cat "+hang+" 2>/dev/null)\n[ -z \"$id\" ] || case $* in *\"$id\"*) exec sleep 1000 ;; esac\nexec "+dockerProgram(t)+" \"$@\"\n"), 0o755))
	s := newSite(t, hosttest.WithConfig("SetEnv HOME=%DIR%/home task_limit=300 PATH="+dir+":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin "+
		"DOCKER_CONFIG="+dockerConfig()))
	b := s.open(t)
	stuck, other := s.spec(t), s.spec(t)
	s.provision(t, b, stuck)
	s.provision(t, b, other)
	must(t, os.WriteFile(hang, []byte(stuck.ID), 0o600))
	s.overdue(t, stuck.ID)
	s.overdue(t, other.ID)
	goneSoon(t, other.ID)
	time.Sleep(3 * time.Second)
	if !runs(t, stuck.ID) {
		t.Error("nothing hung")
	}
	must(t, os.Remove(hang))
	goneSoon(t, stuck.ID)
	if !waitFor(func() bool { return s.expired(stuck.ID) }) {
		t.Error("its end is not recorded")
	}
}

// What a sandbox wrote may have filled the disk: its end makes the room to be noted.
func TestAFullDiskHoldsNoEndUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, hosttest.WithDisk(8))
	b := s.open(t)
	spec := s.spec(t, exttest.WithWorkspace(extensions.AccessRW, map[string]string{"a/b": "c"}))
	h := s.provision(t, b, spec)
	s.endSoon(t, b, &spec)
	fill(t, filepath.Join(s.root, string(h.ID), "workspace", "filler"), 0)
	goneSoon(t, spec.ID)
	if !waitFor(func() bool { return s.expired(h.ID) }) {
		t.Errorf("its end is not recorded: %+v", s.observe(t, b, h))
	}
	if _, err := os.Stat(filepath.Join(s.root, string(h.ID), "workspace")); err == nil {
		t.Error("its workspace is still there")
	}
}

// Where docker reaches another engine than the sandbox's, that nothing is listed
// says nothing: no workspace goes by that, and a teardown says so.
func TestAnotherEngineSaysNothingAboutASandbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t, exttest.WithWorkspace(extensions.AccessRW, map[string]string{"a": "b"}))
	h := s.provision(t, b, spec)
	if !strings.Contains(s.manifest(t, h.ID), "\nengine_id="+docker(t, "info", "--format", "{{.ID}}")+"\n") {
		t.Errorf("the engine is not recorded: %s", s.manifest(t, h.ID))
	}
	s.edit(t, h.ID, "manifest", "engine_id", "ANOTHER:ONE")
	s.removeObjects(t, h.ID)
	s.overdue(t, h.ID)
	time.Sleep(8 * time.Second) // a look of the loop, and its task
	if s.expired(h.ID) {
		t.Error("it counts as ended")
	}
	if _, err := os.Stat(filepath.Join(s.root, string(h.ID), "workspace", "a")); err != nil {
		t.Errorf("its workspace: %v", err)
	}
	r, err := b.Teardown(t.Context(), h)
	must(t, err)
	if len(r.Residue) != 1 || !strings.Contains(r.Residue[0], "another engine") {
		t.Errorf("the report says %q", r.Residue)
	}
}

// A service manager hands on only what it is told.
func TestTheLoopFindsTheEngineOfItsCaller(t *testing.T) {
	t.Parallel()
	inShells(t, []string{"timer"}, `
unset DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_TLS_VERIFY DOCKER_CERT_PATH XDG_RUNTIME_DIR
use_root
DOCKER_CONTEXT='my $(context) "x"' DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH='/a b' XDG_RUNTIME_DIR=/run/user/7
handed() { for word; do case $word in --setenv=[DX]*) printf '%s\n' "$word" ;; esac; done >"$root/handed"; }
timer_by systemd handed
cat "$root/handed"
`, "--setenv=DOCKER_CONTEXT=my $(context) \"x\"\n--setenv=DOCKER_TLS_VERIFY=1\n--setenv=DOCKER_CERT_PATH=/a b\n--setenv=XDG_RUNTIME_DIR=/run/user/7")
}

// lockBox holds the lock of a sandbox until the function it returns is called.
func (s *site) lockBox(t testing.TB, id extensions.ID) func() {
	t.Helper()
	l := flock.New(filepath.Join(s.root, string(id), "lock"), flock.SetFlag(os.O_RDWR))
	must(t, l.Lock())
	return func() { must(t, l.Close()) }
}
