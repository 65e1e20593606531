package composessh

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// bystanders are things of somebody else's that carry the label of a sandbox, as
// any image and any "docker run" can.
type bystanders struct{ container, network, volume string }

func labelled(t testing.TB, spec extensions.Spec) bystanders {
	t.Helper()
	name := "sbxby" + strings.ToLower(rand.Text()[:10])
	labels := []string{"--label", extensions.LabelID + "=" + string(spec.ID), "--label", extensions.LabelAccount + "=" + spec.Account,
		"--label", "com.docker.compose.project=" + string(spec.ID), "--label", "sandboxer.toolbox-for=" + string(spec.ID)}
	by := bystanders{container: name, network: name + "-" + string(spec.ID), volume: name}
	docker(t, append([]string{"run", "-d", "--name", by.container, "--network", "none"},
		append(labels, hosttest.Image(t), "sleep", "300")...)...)
	t.Cleanup(func() { docker(t, "rm", "-f", by.container) })
	docker(t, append([]string{"network", "create", "--internal", "--subnet", ownRange()}, append(labels[:4:4], by.network)...)...)
	t.Cleanup(func() { docker(t, "network", "rm", by.network) })
	docker(t, append([]string{"volume", "create"}, append(labels[:4:4], by.volume)...)...)
	t.Cleanup(func() { docker(t, "volume", "rm", "-f", by.volume) })
	return by
}

// unharmed wants them as they were, and of the sandbox itself nothing more.
func (by bystanders) unharmed(t testing.TB, id extensions.ID) {
	t.Helper()
	if state := docker(t, "inspect", "-f", "{{.State.Status}}", by.container); state != "running" {
		t.Errorf("the other container is %s", state)
	}
	filter := []string{"--filter", "label=" + extensions.LabelID + "=" + string(id), "--format"}
	for kind, left := range map[string]string{
		by.container: docker(t, append([]string{"ps", "-a"}, append(filter, "{{.Names}}")...)...),
		by.network:   docker(t, append([]string{"network", "ls"}, append(filter, "{{.Name}}")...)...),
		by.volume:    docker(t, append([]string{"volume", "ls"}, append(filter, "{{.Name}}")...)...),
	} {
		if left != kind {
			t.Errorf("there is %q, want only %q", left, kind)
		}
	}
}

const withVolume = `
services:
  web: {image: IMAGE, command: [sleep, "300"], volumes: ["data:/data"], networks: [lan]}
volumes: {data: {}}
networks: {lan: {}}
`

func TestWhatOnlyCarriesTheLabelIsNotRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.stack(t, withVolume)
	h := s.provision(t, b, spec)
	by := labelled(t, spec)
	if o := s.observe(t, b, h); o.Phase != extensions.PhaseReady {
		t.Errorf("it is %s: %s", o.Phase, o.Reason)
	}
	r, err := b.Teardown(t.Context(), h)
	must(t, err)
	if got := strings.Join(r.Removed, " "); got != "containers networks volumes folder" {
		t.Errorf("removed: %s", got)
	}
	by.unharmed(t, h.ID)
	_, err = b.Find(t.Context(), h.ID)
	wantKind(t, "what only carries the label", err, extensions.KindNotFound)
	all, err := b.Status(t.Context(), nil)
	must(t, err)
	if len(all) != 0 {
		t.Errorf("listed: %+v", all)
	}
}

func TestWhatOnlyCarriesTheLabelOutlivesItsTime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.stack(t, withVolume)
	s.provision(t, b, spec)
	by := labelled(t, spec)
	s.overdue(t, spec.ID)
	if !waitFor(func() bool { return s.expired(spec.ID) }) {
		t.Error("it has not ended")
	}
	by.unharmed(t, spec.ID)
}

// A container that Compose was replacing has twelve digits before its name.
func TestOnesOwnAreKnownByTheirNames(t *testing.T) {
	t.Parallel()
	inShells(t, nil, `
glob_off
try() { if is_named sbx-x "$1"; then echo yes; else echo no; fi; }
for names in sbx-x-web-1 sbx-x_web_1 other,sbx-x_web_1 0123456789ab_sbx-x-web-1; do try "$names"; done
for names in '' sbx-x sbx-xy-web-1 a-sbx-x-1 other,sbx-x-web-1/alias web/sbx-x-1 012345_sbx-x-web-1; do try "$names"; done
`, strings.TrimSpace(strings.Repeat("yes\n", 4)+strings.Repeat("no\n", 7)))
}

func TestAListThatCannotBeReadIsNoEmptyList(t *testing.T) {
	t.Parallel()
	inShells(t, nil, `
one=`+sixtyFour+`
docker() { eval "$does"; }
try() { does=$1; if ours_containers sbx-x; then echo "ours${ours:+ $ours}"; else echo "cannot $ours"; fi; }
try 'echo "$one sbx-x-web-1"'
try 'echo "$one other"'
try 'echo "some warning $one"; echo "$one sbx-x-web-1,web/db"'
try 'echo "$one"'
try 'echo "deadbeef0123 sbx-x-web-1"'
echo *.none
`, "ours "+sixtyFour+"\nours\nours "+sixtyFour+"\ncannot docker listed "+sixtyFour+" without a name\ncannot docker listed deadbeef0123, which is no id\n*.none")
}

// The calls of docker are most of what an end costs a host.
func TestAnEndAsksDockerForNothingTwice(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	must(t, os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\necho \"$1 $2\" >>"+log+"\nexec "+dockerProgram(t)+" \"$@\"\n"),
		0o755))
	s := newSite(t, hosttest.WithConfig("SetEnv HOME=%DIR%/home PATH="+dir+":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin DOCKER_CONFIG="+dockerConfig()))
	b := s.open(t)
	h := s.several(t, b, "web")
	s.several(t, b, "web") // the last one looks for the toolbox too
	must(t, os.Remove(log))
	_, err := b.Teardown(t.Context(), h)
	must(t, err)
	raw, err := os.ReadFile(log)
	must(t, err)
	want := "ps -a\nrm -f\nnetwork ls\nnetwork rm\nvolume ls\nps -a\nnetwork ls\n"
	if os.Getuid() != 0 { // relays are containers then
		want = strings.Replace(want, "rm -f\n", "rm -f\nps -a\n", 1)
	}
	if string(raw) != want {
		t.Errorf("an end calls docker with %q, want %q", raw, want)
	}
}
