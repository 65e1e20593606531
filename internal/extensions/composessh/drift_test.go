package composessh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

const driftStack = `
services:
  web: {image: IMAGE, command: [sleep, "600"], networks: [default, back]}
  worker: {image: IMAGE, command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 0.2; done"], networks: [back]}
  job: {image: IMAGE, restart: "no", command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 0.2; done"], network_mode: none}
  setup: {image: IMAGE, command: ["true"]}
  late: {image: IMAGE, command: [sleep, "600"], depends_on: {setup: {condition: service_completed_successfully}}}
networks: {back: {}}
`

// What somebody does to a sandbox behind our back shows at the next look, and is
// well again once it is undone.
func TestAChangeByHandIsNoticed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.stack(t, driftStack))
	named := func(service string) string { return string(h.ID) + "-" + service + "-1" }
	net := func(name string) string { return string(h.ID) + "_" + name }
	outside := strings.ToLower("sbxout" + string(h.ID)[4:14])
	docker(t, "network", "create", "--internal", "--subnet", ownRange(), outside)
	t.Cleanup(func() { docker(t, "network", "rm", outside) })
	ready := func(when string) {
		t.Helper()
		if o := s.observe(t, b, h); o.Phase != extensions.PhaseReady || o.Reason != "" {
			t.Fatalf("%s it is %s: %s", when, o.Phase, o.Reason)
		}
	}
	ready("at first")
	docker(t, "restart", "-t", "0", named("late"))
	ready("after a restart")
	docker(t, "stop", named("job"))
	ready("with a job done")
	for _, c := range []struct {
		what     string
		do, undo []string
		want     []string
	}{
		{"a service is paused", []string{"pause", named("worker")}, []string{"unpause", named("worker")},
			[]string{"worker", "paused", "docker unpause"}},
		{"a service ended well", []string{"stop", named("worker")}, []string{"start", named("worker")},
			[]string{"worker has ended", "Exited (0)"}},
		{"a service is off its network", []string{"network", "disconnect", net("back"), named("worker")},
			[]string{"network", "connect", net("back"), named("worker")}, []string{"worker", "no longer on its network back"}},
		{"a service is on another network", []string{"network", "connect", outside, named("web")},
			[]string{"network", "disconnect", outside, named("web")}, []string{"web", outside, "default deny"}},
	} {
		docker(t, c.do...)
		o := s.observe(t, b, h)
		if o.Phase != extensions.PhaseFailed {
			t.Errorf("%s: it is %s: %s", c.what, o.Phase, o.Reason)
		}
		for _, want := range c.want {
			if !strings.Contains(o.Reason, want) {
				t.Errorf("%s: %q does not tell %q", c.what, o.Reason, want)
			}
		}
		docker(t, c.undo...)
		ready(c.what + ", and that was undone:")
	}
	for _, service := range []string{"web", "worker"} {
		docker(t, "network", "disconnect", net("back"), named(service))
	}
	docker(t, "network", "rm", net("back"))
	if o := s.observe(t, b, h); o.Phase != extensions.PhaseFailed || !strings.Contains(o.Reason, "its network back") {
		t.Errorf("without a network it is %s: %s", o.Phase, o.Reason)
	}
}

// Who makes a container anew, under the labels and the name of one of ours, has
// made it with other walls.
func TestAContainerMadeAnewByHandIsNoticed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	for _, network := range []string{"", "allow"} {
		spec := s.stack(t, `
services:
  web: {image: IMAGE, command: [sleep, "600"]}
  db: {image: IMAGE, command: [sleep, "600"]}
`)
		spec.Network.Default = network
		spec.Labels = nil
		h := s.provision(t, b, onImage(t, spec))
		name := string(h.ID) + "-db-1"
		labels := docker(t, "inspect", "-f", `{{range $k, $v := .Config.Labels}}{{$k}}={{$v}}{{println}}{{end}}`, name)
		docker(t, "rm", "-f", name)
		args := []string{"run", "-d", "--name", name, "--network", string(h.ID) + "_default"}
		for label := range strings.Lines(labels) {
			args = append(args, "--label", strings.TrimSpace(label))
		}
		docker(t, append(args, hosttest.Image(t), "sleep", "600")...)
		o := s.observe(t, b, h)
		if network == "allow" {
			if o.Phase != extensions.PhaseReady {
				t.Errorf("where nothing holds it in, it is %s: %s", o.Phase, o.Reason)
			}
		} else if o.Phase != extensions.PhaseFailed || !strings.Contains(o.Reason, "replaced") {
			t.Errorf("under default deny it is %s: %s", o.Phase, o.Reason)
		}
	}
}

// A health check that fails after the create is told with what it says, and ends
// nothing.
func TestAnUnhealthyServiceIsToldWithItsCheck(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.stack(t, `
services:
  web:
    image: IMAGE
    command: [sleep, "600"]
    healthcheck: {test: [CMD, sh, -c, "printf '\\033[31mno route to\\033[0m %s\\n' the-journal; test ! -e /tmp/ill"], interval: 500ms, retries: 1}
`))
	docker(t, "exec", string(h.ID)+"-web-1", "touch", "/tmp/ill")
	var o extensions.Observation
	if !waitFor(func() bool { o = s.observe(t, b, h); return o.Reason != "" }) {
		t.Fatal("nothing is told")
	}
	if o.Phase != extensions.PhaseReady {
		t.Errorf("it is %s", o.Phase)
	}
	for _, want := range []string{"web is unhealthy", "exit code 1", "no route to the-journal"} {
		if !strings.Contains(o.Reason, want) {
			t.Errorf("%q is missing in %q", want, o.Reason)
		}
	}
}

// A refresh asks docker once, for however many sandboxes there are.
func TestALookAsksDockerOnce(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	must(t, os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\necho \"$1 $2\" >>"+log+"\nexec "+dockerProgram(t)+" \"$@\"\n"),
		0o755))
	s := newSite(t, hosttest.WithConfig("SetEnv HOME=%DIR%/home PATH="+dir+":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin DOCKER_CONFIG="+dockerConfig()))
	b := s.open(t)
	handles := []extensions.Handle{s.provision(t, b, s.spec(t)), s.several(t, b, "web")}
	for what, ask := range map[string][]extensions.Handle{"known": handles, "all": nil} {
		must(t, os.WriteFile(log, nil, 0o600))
		list, err := b.Status(t.Context(), ask)
		must(t, err)
		raw, err := os.ReadFile(log)
		must(t, err)
		if string(raw) != "ps -a\n" || len(list) != 2 {
			t.Errorf("%s: a look at %d calls docker with %q", what, len(list), raw)
		}
	}
}
