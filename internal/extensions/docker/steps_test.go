package docker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

func (s *site) open(t testing.TB) *Backend {
	t.Helper()
	x, err := New().Open(t.Context(), s.config)
	must(t, err)
	t.Cleanup(func() { must(t, x.Close()) })
	return x.(*Backend)
}

// provision makes a sandbox that lives until the test ends.
func (s *site) provision(t testing.TB, b *Backend, opts ...exttest.Option) (extensions.Handle, extensions.Spec) {
	t.Helper()
	spec := onImage(t, exttest.Spec(t, s.config, opts...))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	t.Cleanup(func() {
		_, err := b.Teardown(context.Background(), h) // before b is closed
		must(t, err)
	})
	_, err = b.WaitReady(t.Context(), spec, h)
	must(t, err)
	return h, spec
}

type died struct{}

// dieAt runs do, and stops it dead at a step, as a killed process stops. It returns the step's name, "" if there is no such step.
func dieAt(b *Backend, step int, do func()) (name string) {
	n := 0
	b.onStep = func(at string) {
		if n++; n == step {
			name = at
			panic(died{})
		}
	}
	defer func() {
		b.onStep = nil
		if r := recover(); r != nil {
			if _, ok := r.(died); !ok {
				panic(r)
			}
		}
	}()
	do()
	return ""
}

// whole is a spec with every object that a sandbox can have.
func (s *site) whole(t testing.TB) extensions.Spec {
	image := extensions.Image{Pull: hosttest.Image(t)}
	return exttest.Spec(t, s.config, exttest.WithSecret("A", "b"), exttest.With(func(s *extensions.Spec) {
		s.Network.Default = "allow"
		s.Containers = &extensions.Containers{Agent: extensions.Container{Image: image}, Services: map[string]extensions.Container{
			"web": {Image: image, Command: []string{"sleep", "600"}}}}
	}))
}

// settle proves that what a killed run left is found and removed, and that another create makes one sandbox.
func (s *site) settle(t *testing.T, spec extensions.Spec, at string) {
	t.Helper()
	b := s.open(t)
	h, _, err := b.Provision(t.Context(), spec)
	if err != nil {
		t.Fatalf("%s: another create: %v", at, err)
	}
	if found, err := b.Find(t.Context(), spec.ID); err != nil || found.Encode() != h.Encode() {
		t.Errorf("%s: found %s, %v", at, found.Encode(), err)
	}
	if n := len(s.residue(t)); n != 3 { // two containers and a network
		t.Errorf("%s: %d objects of one sandbox: %s", at, n, strings.Join(s.residue(t), "\n"))
	}
	if _, err := b.Teardown(t.Context(), h); err != nil {
		t.Errorf("%s: teardown: %v", at, err)
	}
	if left := s.residue(t); len(left) != 0 {
		t.Errorf("%s: left %q", at, left)
	}
}

func TestACreateKilledAtAnyStepLeavesNothingTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.gate.unique.Store(true)
	for step := 1; ; step++ {
		spec := s.whole(t)
		b := s.open(t)
		at := dieAt(b, step, func() { _, _, _ = b.Provision(t.Context(), spec) })
		if at == "" {
			s.settle(t, spec, "the end")
			if step < 7 {
				t.Errorf("only %d steps", step-1)
			}
			return
		}
		if _, err := s.open(t).Find(t.Context(), spec.ID); err != nil && !extensions.IsKind(err, extensions.KindNotFound) {
			t.Errorf("%s: find: %v", at, err)
		}
		s.settle(t, spec, at)
	}
}

// pair is a sandbox whose agent and two services, each with a server on the same port, have a network.
func (s *site) pair(t testing.TB, port string, opts ...exttest.Option) extensions.Spec {
	serve := extensions.Container{Image: extensions.Image{Pull: hosttest.Image(t)}, Command: []string{"sh", "-c", "hostname >/tmp/name; " +
		"exec nc -ll -p " + port + " -e cat /tmp/name"}}
	other := serve
	other.Hostname = "database"
	return exttest.Spec(t, s.config, append([]exttest.Option{exttest.With(func(s *extensions.Spec) {
		s.Containers = &extensions.Containers{Agent: extensions.Container{Image: serve.Image},
			Services: map[string]extensions.Container{"web": serve, "db": other}}
	})}, opts...)...)
}

// What a run looked at is old when it acts: the engine may have made the networks since.
func TestANetworkMadeSinceTheLookIsRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.gate.unique.Store(true)
	spec, b := s.pair(t, "8080"), s.open(t)
	dieAt(b, 3, func() { _, _, _ = b.Provision(t.Context(), spec) })
	found, err := b.lookEverywhere(t.Context(), spec.ID)
	must(t, err)
	if len(found.networks) != 2 {
		t.Fatalf("its networks are %+v", found.networks)
	}
	found.networks = nil
	_, err = b.remove(t.Context(), found)
	must(t, err)
	if left := s.residue(t); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

func TestADestroyKilledAtAnyStepIsFinished(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for step := 1; ; step++ {
		spec := s.whole(t)
		b := s.open(t)
		h, _, err := b.Provision(t.Context(), spec)
		must(t, err)
		at := dieAt(b, step, func() { _, _ = b.Teardown(t.Context(), h) })
		r, err := s.open(t).Teardown(t.Context(), h)
		if err != nil {
			t.Errorf("step %d: %v", step, err)
		}
		if gone := at != "remove"; r.AlreadyGone != gone || r.EndedAt.IsZero() != gone { // nobody knows when a killed run ended it
			t.Errorf("%s: the next destroy reports %+v", at, r)
		}
		if left := s.residue(t); len(left) != 0 {
			t.Errorf("%s: left %q", at, left)
		}
		if at == "" {
			return
		}
	}
}

// Networks and images take their time, and nobody pays for it.
func TestASandboxEndsWithItsContainers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, _, err := b.Provision(t.Context(), s.whole(t))
	must(t, err)
	var stopped time.Time
	b.onStep = func(at string) {
		if at == "stopped" {
			stopped = time.Now()
		}
	}
	r, err := b.Teardown(t.Context(), h)
	if err != nil || r.AlreadyGone || r.EndedAt.IsZero() || r.EndedAt.After(stopped) || !r.Usage.EndedAt.Equal(r.EndedAt) {
		t.Errorf("%+v, %v; its containers were gone at %s", r, err, stopped)
	}
}

func TestACreateWhoseAnswerIsLostAnywhereIsFound(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/networks/create", "/containers/create", "/archive", "/start", "/rename"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			spec := s.whole(t)
			s.gate.loseAnswerOf(path)
			_, _, err := s.open(t).Provision(t.Context(), spec)
			if !extensions.IsKind(err, extensions.KindIndeterminate) {
				t.Errorf("the answer of %s was lost: %v", path, err)
			}
			time.Sleep(300 * time.Millisecond) // what the engine began may end after the connection
			s.settle(t, spec, path)
		})
	}
}

func TestNamesCarryWhatChanges(t *testing.T) {
	t.Parallel()
	const id = extensions.ID("sbx-aaaaaaaaaaaaaaaaaaaa")
	at := time.Date(2026, 11, 23, 12, 0, 0, 123456000, time.UTC)
	for _, want := range []standing{{generation: 1, deadline: at}, {generation: 42, deadline: at, since: at.Add(-time.Hour)},
		{generation: 2, deadline: at, hold: hold{"snp-aaaaaaaaaaaaaaaaaaaa", true}},
		{generation: 2, deadline: at, since: at.Add(-time.Hour), hold: hold{"sbx-bbbbbbbbbbbbbbbbbbbb", false}}} {
		if got, ok := parseStanding(id, want.name(id)); !ok || got != want {
			t.Errorf("%s read as %+v, %t", want.name(id), got, ok)
		}
	}
	for _, name := range []string{"", "sbx-aaaaaaaaaaaaaaaaaaaa.new", "sbx-bbbbbbbbbbbbbbbbbbbb.g1.20261123T120000-000000Z",
		"sbx-aaaaaaaaaaaaaaaaaaaa.g1", fmt.Sprintf("%s.gx.20261123T120000-000000Z", id)} {
		if got, ok := parseStanding(id, name); ok {
			t.Errorf("%q read as %+v", name, got)
		}
	}
}

func TestAMachineWithoutDockerIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	cfg := extensions.Config{Binding: "ext.docker", Account: "a/b", Values: map[string]any{"endpoint": "unix:///nonexistent/docker.sock"}}
	b, err := New().Open(t.Context(), cfg)
	must(t, err)
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) { s.Image = &extensions.Image{Pull: "debian"} }))
	_, _, err = b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(extensions.RemedyOf(err), "DOCKER_HOST") {
		t.Errorf("%v (%s)", err, extensions.RemedyOf(err))
	}
	if _, err = b.Status(t.Context(), nil); !extensions.IsKind(err, extensions.KindUnreachable) {
		t.Errorf("status without an engine: %v", err)
	}
}
