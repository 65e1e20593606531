package composessh

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// hangingDocker is a site whose docker never comes back while the file is there.
func hangingDocker(t testing.TB) (s *site, hang string) {
	t.Helper()
	hosttest.Docker(t)
	dir := t.TempDir()
	hang = filepath.Join(dir, "hang")
	must(t, os.WriteFile(filepath.Join(dir, "docker"),
		[]byte("#!/bin/sh\n[ ! -e "+hang+" ] || exec sleep 1000\nexec "+dockerProgram(t)+" \"$@\"\n"), 0o755))
	return newSite(t, hosttest.WithConfig("SetEnv HOME=%DIR%/home docker_patience=2 PATH="+dir+":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin DOCKER_CONFIG="+dockerConfig())), hang
}

// A Docker that never answers is waited for once and told, by every operation, and
// nothing is left waiting on the host.
func TestADockerThatNeverAnswersIsTold(t *testing.T) {
	t.Parallel()
	s, hang := hangingDocker(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	waiting := func() (n int) {
		for _, line := range s.residue(t) {
			if strings.HasPrefix(line, "process: ") {
				n++
			}
		}
		return n
	}
	before := waiting()
	must(t, os.WriteFile(hang, nil, 0o600))
	time.Sleep(3 * time.Second) // for so long a script believes what another one was answered: seen_lately
	hung := func(what string, err error) {
		t.Helper()
		wantKind(t, what, err, extensions.KindUnavailable, "gave no answer within 2 s")
		var e *extensions.Error
		if !errors.As(err, &e) || e.RetryAfter < 30*time.Second || !strings.Contains(e.Remedy, "systemctl status docker") {
			t.Errorf("%s: %+v", what, e)
		}
	}
	spec := s.spec(t)
	made, _, err := b.Provision(t.Context(), spec)
	hung("create", err)
	if !made.IsZero() {
		t.Errorf("something may exist: %s", made.Encode())
	}
	_, err = b.Status(t.Context(), nil)
	hung("status", err)
	_, err = b.Find(t.Context(), spec.ID)
	hung("find", err)
	_, err = b.Teardown(t.Context(), h)
	hung("teardown", err)
	facts, _, err := b.Probe(t.Context())
	must(t, err)
	if notes := strings.Join(facts.Unfit, " "); !strings.Contains(notes, "gave no answer within 2 s") {
		t.Errorf("unfit: %q", notes)
	}
	must(t, os.Remove(hang))
	if !waitFor(func() bool { return waiting() == before }) {
		t.Errorf("%d processes are left, before there were %d: %q", waiting(), before, s.residue(t))
	}
	if o := s.observe(t, b, h); o.Phase != extensions.PhaseReady {
		t.Errorf("it is %s: %s", o.Phase, o.Reason)
	}
}

// What is asked within the time is answered as ever, words and code included.
func TestDockerIsAskedWithinBounds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: starts no other processes")
	}
	inShells(t, nil, `
docker_patience=1
docker() { echo "said $1"; echo "warned" >&2; return 7; }
got=$(docker_soon ps 2>&1); echo "$? $(echo $got)"
docker() { exec sleep 60; }
got=$(docker_soon ps 2>&1); echo "$? $got"
`, "7 said ps warned\n124 docker ps gave no answer within 1 s")
}
