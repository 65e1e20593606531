package composessh

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// What docker says beside its lists is nothing to remove: a warning whose words
// are names of other people's things is no reason to remove those.
func TestWordsOfAWarningAreNotRemoved(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	victim := "sbxwarn" + strings.ToLower(rand.Text()[:10])
	docker(t, "run", "-d", "--name", victim, "--label", "sandboxer.test="+victim, "--network", "none", hosttest.Image(t), "sleep", "300")
	t.Cleanup(func() { docker(t, "rm", "-f", victim) })
	docker(t, "volume", "create", victim)
	t.Cleanup(func() { docker(t, "volume", "rm", "-f", victim) })
	docker(t, "network", "create", "--internal", "--subnet", ownRange(), victim)
	t.Cleanup(func() { docker(t, "network", "rm", victim) })

	dir := t.TempDir()
	real, err := filepath.Abs(dockerProgram(t))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "docker"),
		[]byte("#!/bin/sh\necho 'WARNING: Error loading config file: "+victim+" * denied' >&2\nexec "+real+" \"$@\"\n"), 0o755))
	s := newSite(t, hosttest.WithConfig("SetEnv HOME=%DIR%/home PATH="+dir+":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin DOCKER_CONFIG="+dockerConfig()))
	b := s.open(t)
	h := s.several(t, b, "web")
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	for _, kind := range []string{"container", "volume", "network"} {
		docker(t, kind, "inspect", victim)
	}
	if state := docker(t, "inspect", "-f", "{{.State.Status}}", victim); state != "running" {
		t.Errorf("the other container is %s", state)
	}
	if left := s.containers(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func dockerProgram(t testing.TB) string {
	t.Helper()
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, "docker")); err == nil {
			return filepath.Join(dir, "docker")
		}
	}
	t.Fatal("there is no docker")
	return ""
}

func dockerConfig() string {
	if dir := os.Getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	return filepath.Join(os.Getenv("HOME"), ".docker")
}

func TestListsAreOfIDsAlone(t *testing.T) {
	t.Parallel()
	one, two := strings.Repeat("0a", 32), strings.Repeat("ff", 32)
	inShells(t, nil, `
one=`+one+` two=`+two+`
docker() { eval "$does"; }
try() { does=$1; shift; if list_ours "$@"; then echo "ours${ours:+ $ours}"; else echo "cannot $ours"; fi; }
try 'echo "WARNING: * $two" >&2; echo $one; echo $two' ps -aq
try 'echo "WARNING: two $two"; echo $one; echo "*"' ps -aq
try 'echo deadbeef0123; echo $one' ps -aq
try ':' network ls -q
try 'echo "no daemon" >&2; echo $one; return 1' ps -aq
try 'echo vol_1.x-y; echo "Some warning"; echo "-f"; echo $one' volume ls -q
try 'echo net-a; echo "*"; echo "a/b"' network ls --format '{{.Name}}'
echo *.none
`, strings.Join([]string{"ours " + one + " " + two, "ours " + one, "cannot docker listed deadbeef0123, which is no id", "ours", "cannot no daemon",
		"ours vol_1.x-y " + one, "ours net-a", "*.none"}, "\n"))
}
