package docker

import (
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// Several processes create at once, and each looks before any other has made anything.
func TestNoMoreSandboxesThanAllowedAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.config.Values["max_sandboxes"] = 2
	var all sync.WaitGroup
	handles := make([]extensions.Handle, 5)
	for i := range handles {
		b, spec := s.open(t), onImage(t, exttest.Spec(t, s.config))
		all.Go(func() {
			h, _, err := b.Provision(t.Context(), spec)
			if err == nil {
				handles[i] = h
			} else if !extensions.IsKind(err, extensions.KindExhausted) || !h.IsZero() {
				t.Errorf("it was refused with %q, %v", h.ID, err)
			}
		})
	}
	all.Wait()
	b, n := s.open(t), 0
	for _, h := range handles {
		if h.IsZero() {
			continue
		}
		n++
		_, err := b.Pause(t.Context(), h) // it still holds its room
		must(t, err)
	}
	if c, err := b.Capacity(t.Context()); err != nil || n != 2 || *c.Used != 2 {
		t.Errorf("%d were made, %+v, %v", n, c, err)
	}
	if _, _, err := b.Provision(t.Context(), onImage(t, exttest.Spec(t, s.config))); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Errorf("one more beside paused ones: %v", err)
	}
	for _, h := range handles {
		if !h.IsZero() {
			_, err := b.Teardown(t.Context(), h)
			must(t, err)
		}
	}
}

// What is being made holds its room as what runs does, until the deadline that it was to have.
func TestWhatIsBeingMadeHoldsItsRoom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.config.Values["max_sandboxes"] = 1
	first, other := s.open(t), s.open(t)
	spec := onImage(t, exttest.Spec(t, s.config))
	for step, want := range map[string]extensions.Kind{"fill": extensions.KindExhausted, "room": ""} {
		if at := dieAt(first, map[string]int{"room": 2, "fill": 4}[step], func() { _, _, _ = first.Provision(t.Context(), spec) }); at != step {
			t.Fatalf("it died at %q", at)
		}
		h, _, err := other.Provision(t.Context(), onImage(t, exttest.Spec(t, s.config)))
		if extensions.KindOf(err) != want {
			t.Errorf("beside one that died at %s: %v", step, err)
		}
		if err == nil {
			_, err = other.Teardown(t.Context(), h)
			must(t, err)
		}
		s.clear(t, other, spec.ID)
	}
	dead := onImage(t, exttest.Spec(t, s.config, exttest.With(func(s *extensions.Spec) { s.Deadline = time.Now().Add(6 * time.Second) })))
	dieAt(first, 4, func() { _, _, _ = first.Provision(t.Context(), dead) })
	time.Sleep(time.Until(dead.Deadline) + 1500*time.Millisecond)
	h, _, err := other.Provision(t.Context(), onImage(t, exttest.Spec(t, s.config)))
	must(t, err)
	_, err = other.Teardown(t.Context(), h)
	must(t, err)
	s.clear(t, other, dead.ID)
}

// clear ends what a create left that died.
func (s *site) clear(t *testing.T, b *Backend, id extensions.ID) {
	t.Helper()
	h, err := b.Find(t.Context(), id)
	must(t, err)
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
}

// A create that dies while it counts keeps nobody else out for long, and what it left goes with its sandbox.
func TestADeadCreateKeepsNobodyOut(t *testing.T) { //nolint:paralleltest // it has what all creates of the engine wait for
	s := newSite(t)
	b := s.open(t)
	spec := onImage(t, exttest.Spec(t, s.config))
	hold := func() {
		its := objects{id: spec.ID, account: s.config.Account}.placeholder()
		_, err := b.engine.ContainerCreate(t.Context(), idle(nameRoom, spec.Image.Pull, its))
		must(t, err)
	}
	b.onStep = func(at string) {
		if at == "room" {
			hold()
		}
	}
	began := time.Now()
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	if took := time.Since(began); took < roomTime {
		t.Errorf("it waited only %s for a count that may be under way", took)
	}
	hold()
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	if _, err := b.engine.ContainerInspect(t.Context(), nameRoom, client.ContainerInspectOptions{}); err == nil {
		t.Error("what counted is still there")
	}
}

// What only counts is made of the agent's image, and has its volumes.
func TestWhatCountsLeavesNoVolume(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.config.Values["max_sandboxes"] = 4
	b := s.open(t)
	image := withVolumes(t, "mkdir /data", "/data")
	var volume string
	b.onStep = func(step string) {
		if step == "agent" {
			volume = docker(t, "inspect", "--format", "{{range .Mounts}}{{.Name}}{{end}}", nameRoom)
		}
	}
	s.become(t, b, exttest.Spec(t, s.config, exttest.With(func(spec *extensions.Spec) { spec.Image = image })))
	if volume == "" {
		t.Fatal("what counted had no volume")
	}
	if left := docker(t, "volume", "ls", "--quiet", "--filter", "name="+volume); left != "" {
		t.Errorf("the volume %s of what counted is left", left)
	}
}
