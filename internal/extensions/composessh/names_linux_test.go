package composessh

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// refusedBy reports whether a stack is refused by that rule.
func refusedBy(err error, rule string) bool {
	var refused *compose.PolicyError
	if !errors.As(err, &refused) {
		return false
	}
	for _, v := range refused.Violations {
		if v.Rule == rule {
			return true
		}
	}
	return false
}

func TestAStackCannotJoinTheProxysNetwork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.config.Host.ProxyImage = "squid.invalid/squid@sha256:" + strings.Repeat("0", 64)
	b := s.open(t)
	spec := s.stack(t, `
services:
  web:
    image: IMAGE
    command: [sleep, "1000"]
    networks: [default, sandboxer-egress]
networks: {default: {}, sandboxer-egress: {}}
`)
	spec.Network = extensions.Network{Default: "deny", Egress: []extensions.EgressRule{{Domain: "allowed.example", Port: 443}}}
	if _, err := b.plan(t.Context(), spec); !refusedBy(err, "reserved-name") {
		t.Errorf("the plan was %v", err)
	}
}

// What the policy let through all the same does not start.
func TestTheProxyAloneLeadsOut(t *testing.T) {
	t.Parallel()
	w := walls{mode: compose.NetworkProxy, image: "squid", rules: []extensions.EgressRule{{Domain: "allowed.example"}}}
	for what, model := range map[string]string{
		"a network of its name":     `{"services":{"web":{"networks":{"default":{}}}},"networks":{"default":{},"sandboxer-egress":{}}}`,
		"a service that joins it":   `{"services":{"web":{"networks":{"default":{},"sandboxer-egress":{}}}},"networks":{"default":{}}}`,
		"a service that is it":      `{"services":{"sandboxer-proxy":{"networks":{"default":{}}}},"networks":{"default":{}}}`,
		"a configuration of its":    `{"services":{"web":{"networks":{"default":{}}}},"networks":{"default":{}},"configs":{"sandboxer-proxy":{"content":"x"}}}`,
		"a service in its network":  `{"services":{"web":{"network_mode":"service:sandboxer-proxy"}},"networks":{"default":{}}}`,
		"a service of somebody's":   `{"services":{"web":{"network_mode":"container:x"}},"networks":{"default":{}}}`,
		"a service on the host":     `{"services":{"web":{"network_mode":"host"}},"networks":{"default":{}}}`,
		"a list of networks":        `{"services":{"web":{"networks":["default"]}},"networks":{"default":{}}}`,
		"a network listed, not had": `{"services":{"web":{"networks":{"default":{}}}},"networks":{"default":{}},"also":"sandboxer-egress"}`,
	} {
		networks := []string{"default"}
		if strings.Contains(model, `"also"`) {
			networks = append(networks, proxyNetwork)
		}
		if r, err := w.apply(compose.Rendered{Model: []byte(model), Networks: networks}, nil); err == nil {
			t.Errorf("%s: %s", what, r.Model)
		}
	}
	r, err := w.apply(compose.Rendered{Model: []byte(`{"services":{"web":{"networks":{"default":{}}},"off":{"network_mode":"none"}},"networks":{"default":{}}}`), Networks: []string{"default"}}, nil)
	must(t, err)
	var model struct {
		Services map[string]struct{ Networks map[string]any }
	}
	must(t, json.Unmarshal(r.Model, &model))
	for name, service := range model.Services {
		if _, joins := service.Networks[proxyNetwork]; joins != (name == proxyService) {
			t.Errorf("%s joins %v", name, service.Networks)
		}
	}
}

// Labels that an image brings make nobody's container a sandbox's.
func TestABuildCannotPassForAnothersService(t *testing.T) {
	t.Parallel()
	marks := newBuilder(t)
	s := newSite(t)
	b := s.open(t)
	victim := s.provision(t, b, s.stack(t, "services: {web: {image: IMAGE, command: [sleep, '1000'], stop_signal: KILL}}"))
	attack := s.spec(t, func(sp *extensions.Spec) {
		sp.Image = &extensions.Image{Build: &extensions.BuildStage{Context: "."}}
		sp.Workspace.Source = newFolder(t, map[string]string{"Dockerfile": marks.from("") + "LABEL sandboxer.id=" + string(victim.ID) +
			" com.docker.compose.project=" + string(victim.ID) +
			" com.docker.compose.service=web sandboxer.account=evil/x\nRUN echo evil >/whoami; sleep 60\n"})
	})
	s.tearDownAtEnd(t, attack.ID)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _, err := b.Provision(ctx, attack); done <- err }()
	defer func() { cancel(); <-done }()
	labelled := func() []string {
		return strings.Fields(docker(t, "ps", "-q", "--filter", "label=sandboxer.id="+string(victim.ID)))
	}
	waitFor(func() bool { return len(labelled()) > 1 || len(done) > 0 }) // or the build is refused
	r, err := b.Exec(t.Context(), victim, extensions.ExecRequest{Shell: "cat /whoami; echo $S", Service: "web",
		Env: map[string]string{"S": "for-the-victim"}})
	if err != nil || strings.Contains(string(r.Stdout), "evil") || !strings.Contains(string(r.Stdout), "for-the-victim") {
		t.Errorf("exec went to %q, %v", r.Stdout, err)
	}
	if o := s.observe(t, b, victim); o.Phase != extensions.PhaseReady {
		t.Errorf("it is %s: %s", o.Phase, o.Reason)
	}
	if _, err := b.Teardown(t.Context(), victim); err != nil {
		t.Errorf("teardown: %v", err)
	}
}

// The same without a builder: an image's labels on a container of anybody's.
func TestForeignContainersWithOurLabelsAreNotCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.stack(t, "services: {web: {image: IMAGE, command: [sleep, '1000'], stop_signal: KILL}}")
	h := s.provision(t, b, spec)
	image := docker(t, "inspect", "-f", "{{.Image}}", containerOf(t, h.ID, "web"))
	name := "stranger-" + strings.ToLower(randomName())
	docker(t, "run", "-d", "--name", name, "--network", "none", "--stop-signal", "KILL", "--label", "sandboxer.id="+string(h.ID), "--label",
		"com.docker.compose.project="+string(h.ID),
		"--label", "com.docker.compose.service=web", "--label", "sandboxer.account=evil/x", image, "sh", "-c", "echo evil >/whoami; sleep 1000")
	// One of a stack of somebody's own is named by its own project.
	other := "other-" + strings.ToLower(randomName())
	docker(t, "run", "-d", "--name", other+"-web-1", "--network", "none", "--stop-signal", "KILL", "--label", "sandboxer.id="+string(h.ID),
		"--label", "com.docker.compose.project="+other,
		"--label", "com.docker.compose.service=web", "--label", "sandboxer.account="+s.config.Account, image, "false")
	t.Cleanup(func() {
		for _, n := range []string{name, other + "-web-1"} {
			if docker(t, "ps", "-aq", "--filter", "name=^/?"+n+"$") != "" {
				docker(t, "rm", "-f", n)
			}
		}
	})
	r := run(t, b, h, extensions.ExecRequest{Shell: "cat /whoami 2>/dev/null; echo for $S", Service: "web", Env: map[string]string{"S": "me"}})
	if strings.TrimSpace(string(r.Stdout)) != "for me" {
		t.Errorf("exec went to %q", r.Stdout)
	}
	all, err := b.Status(t.Context(), nil)
	must(t, err)
	if len(all) != 1 || all[0].Phase != extensions.PhaseReady {
		t.Errorf("%+v", all)
	}
	if _, err := b.Teardown(t.Context(), h); err != nil {
		t.Errorf("teardown: %v", err)
	}
}

func TestNothingStartsAgainByItself(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.stack(t, "services: {web: {image: IMAGE, restart: always, command: [sleep, '1000'], stop_signal: KILL, deploy: "+
		"{restart_policy: {condition: any}}}}")
	spec.Network = extensions.Network{Default: "allow"}
	h := s.provision(t, b, spec)
	if policy := docker(t, "inspect", "-f", "{{.HostConfig.RestartPolicy.Name}}", containerOf(t, h.ID, "web")); policy != "" &&
		policy != "no" {
		t.Errorf("the engine restarts it: %s", policy)
	}
}
