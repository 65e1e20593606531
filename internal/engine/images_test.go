package engine_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// imaging is the stub vendor as a place that prepares images.
type imaging struct {
	mu        sync.Mutex
	prepared  []extensions.Spec
	made      []extensions.Spec
	before    int // creates that began before anything was prepared
	prepare   func(context.Context, extensions.Spec) error
	provision func(context.Context, extensions.Spec) error
}

func (i *imaging) extension() extensions.Extension {
	return &hooked{handler: "imaging",
		says: func(d *extensions.Descriptor) {
			d.Powers = append(slices.Clone(d.Powers), extensions.PowerPrepareImage)
			d.Capabilities.Provides.RequirementKinds = append(slices.Clone(d.Capabilities.Provides.RequirementKinds), "image", "containers")
		},
		does: func(c *calls, _ extensions.Config) {
			c.PrepareImage = func(ctx context.Context, s extensions.Spec) (string, error) {
				i.mu.Lock()
				i.prepared = append(i.prepared, s)
				i.mu.Unlock()
				if i.prepare != nil {
					if err := i.prepare(ctx, s); err != nil {
						return "", err
					}
				}
				return "sha256:" + s.ImageKey(), nil
			}
			next := c.Provision
			c.Provision = func(ctx context.Context, s extensions.Spec) (extensions.Handle, extensions.Observation, error) {
				i.mu.Lock()
				i.made = append(i.made, s)
				if len(i.prepared) == 0 {
					i.before++
				}
				i.mu.Unlock()
				if i.provision != nil {
					if err := i.provision(ctx, s); err != nil {
						return extensions.Handle{}, extensions.Observation{}, err
					}
				}
				s.Image, s.Containers = nil, nil // the stub's vendor runs none
				return next(ctx, s)
			}
		}}
}

func (i *imaging) counts() (prepared, made int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.prepared), len(i.made)
}

// withImages has the profile profile.image, on a binding ext.imaging with more lines of its own.
func withImages(image, binding string) with {
	return onFiles(map[string]string{
		"extensions/ext.imaging.yaml": "id: ext.imaging\nhandler: imaging\nconfig: {dir: $VENDOR}\n" + binding,
		"profiles/profile.image.yaml": "id: profile.image\nversion: 1.0.0\nextends: profile.stub\nextension: ext.imaging\nimage: " + image + "\n",
	})
}

func TestManySandboxesOfOneImagePrepareItOnceAndAreThenMadeTogether(t *testing.T) {
	t.Parallel()
	const many = 6
	x := &imaging{}
	var inside atomic.Int32
	met := make(chan struct{}) // two were inside together
	x.prepare = func(ctx context.Context, _ extensions.Spec) error {
		for n := range 500 {
			extensions.Progress(ctx, "Pulling python:3.12", fmt.Sprintf("%d of 500 MiB", n))
		}
		time.Sleep(50 * time.Millisecond)
		return nil
	}
	x.provision = func(context.Context, extensions.Spec) error {
		if inside.Add(1) == 2 {
			close(met)
		}
		select {
		case <-met:
			return nil
		case <-time.After(30 * time.Second):
			return errors.New("nobody else is made meanwhile")
		}
	}
	b := newBench(t, having(x.extension()), withImages("{pull: python:3.12}", ""))
	var mu sync.Mutex
	var told []engine.Notice
	var all sync.WaitGroup
	for n := range many {
		all.Go(func() {
			_, err := b.Create(t.Context(), engine.Request{Profile: "profile.image", Name: fmt.Sprint("s", n), TTL: "10m"}, nil, func(m engine.Notice) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, m)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if prepared, made := x.counts(); prepared != 1 || made != many || x.before != 0 {
		t.Errorf("prepared %d times for %d creates, %d of them before it", prepared, made, x.before)
	}
	pulls := slices.DeleteFunc(told, func(n engine.Notice) bool { return n.Summary != "Pulling python:3.12" })
	if len(pulls) != 1 || pulls[0].Detail != "0 of 500 MiB" {
		t.Errorf("of 500 steps within a moment one is told, not %d: %+v", len(pulls), pulls)
	}
}

func TestAnImageThatCannotBePreparedCostsNothing(t *testing.T) {
	t.Parallel()
	for kind, next := range map[extensions.Kind]bool{extensions.KindInvalid: false, extensions.KindUnauthorized: false,
		extensions.KindUnsupported: true} {
		x := &imaging{prepare: func(context.Context, extensions.Spec) error {
			return extensions.Errorf(kind, "no such image").WithRemedy("correct it")
		}}
		b := newBench(t, having(x.extension()), onFiles(map[string]string{
			"extensions/ext.imaging.yaml": "id: ext.imaging\nhandler: imaging\nconfig: {dir: $VENDOR}\n",
			"extensions/ext.other.yaml":   "id: ext.other\nhandler: imaging\nconfig: {dir: $DEAR}\n",
			"profiles/profile.image.yaml": "id: profile.image\nversion: 1.0.0\nextends: profile.stub\nextension: null\nimage: {pull: x}\n" +
				"route: {strategy: explicit, fallback: [ext.imaging, ext.other]}\n",
		}))
		s, err := b.Create(t.Context(), engine.Request{Profile: "profile.image", Name: "one", TTL: "10m"}, nil, nil)
		if s.ID != "" || !extensions.IsKind(err, kind) || !strings.Contains(err.Error(), "no such image") {
			t.Errorf("%s: %q %v", kind, s.ID, err)
		}
		if prepared, made := x.counts(); made != 0 || (prepared == 2) != next {
			t.Errorf("%s: %d places were asked to prepare, %d to create", kind, prepared, made)
		}
		usage, err := b.Usage(t.Context(), engine.UsageQuery{})
		if err != nil || len(usage.Settled)+len(usage.Running) > 0 {
			t.Errorf("%s: it cost %+v, %v", kind, usage, err)
		}
	}
}

func TestALoginOfARegistryReachesThePlaceAndNothingElse(t *testing.T) {
	canary := canaries["OWN"]
	t.Setenv("REGISTRY_PASSWORD", canary)
	x := &imaging{}
	login := func(ctx context.Context, s extensions.Spec) error {
		l, ok := s.Registries["ghcr.io"]
		password, err := l.Password(ctx)
		if !ok || l.Username != "bot" || password.Reveal() != canary || err != nil {
			return fmt.Errorf("the login is %v: %w", l, err)
		}
		return extensions.Errorf(extensions.KindInvalid, "the registry says %s", password.Reveal())
	}
	x.prepare = login
	b := newBench(t, having(x.extension()),
		withImages("{pull: ghcr.io/acme/tool:1}", "registries: {ghcr.io: {username: bot, password: env://REGISTRY_PASSWORD}}\n"))
	_, err := b.Create(t.Context(), engine.Request{Profile: "profile.image", Name: "one", TTL: "10m"}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "the registry says "+extensions.Redacted) || strings.Contains(err.Error(), canary) {
		t.Errorf("%v", err)
	}
	x.prepare = nil
	s, err := b.Create(t.Context(), engine.Request{Profile: "profile.image", Name: "one", TTL: "10m"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	quiet(t, "the sandbox", fmt.Sprintf("%+v", s))
	b.quietFiles()
}

func TestALoginThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	x := &imaging{prepare: func(ctx context.Context, s extensions.Spec) error {
		_, err := s.Registries["ghcr.io"].Password(ctx)
		return err
	}}
	b := newBench(t, having(x.extension()),
		withImages("{pull: ghcr.io/acme/tool:1}", "registries: {ghcr.io: {username: bot, password: env://NO_SUCH_VARIABLE}}\n"))
	_, err := b.Create(t.Context(), engine.Request{Profile: "profile.image", Name: "one", TTL: "10m"}, nil, nil)
	if !extensions.IsKind(err, extensions.KindUnauthorized) || !strings.Contains(err.Error(), "NO_SUCH_VARIABLE") {
		t.Errorf("%v", err)
	}
	if _, made := x.counts(); made != 0 {
		t.Error("it was made all the same")
	}
}

func TestAnImageIsBuiltFromTheProfilesBundle(t *testing.T) {
	t.Parallel()
	var names []string
	x := &imaging{prepare: func(_ context.Context, spec extensions.Spec) error {
		spec.WithImages(func(i extensions.Image) extensions.Image {
			if i.BundleSource != nil {
				names = append(names, filesOf(t, i.BundleSource)...)
			}
			return i
		})
		return nil
	}}
	b := newBench(t, having(x.extension()), onFiles(map[string]string{
		"extensions/ext.imaging.yaml": "id: ext.imaging\nhandler: imaging\nconfig: {dir: $VENDOR}\n",
		"profiles/profile.own.yaml": "id: profile.own\nversion: 1.0.0\nextends: profile.stub\nextension: ext.imaging\n" +
			"image: {bundle: tools, build: {context: app}}\n",
		"profiles/profile.image.yaml":      "id: profile.image\nversion: 1.0.0\nextends: profile.own\n",
		"profiles/tools/app/Dockerfile":    "FROM a\n",
		"profiles/profile.missing.yaml":    "id: profile.missing\nversion: 1.0.0\nextends: profile.own\nimage: {bundle: none}\n",
		"profiles/profile.containers.yaml": "id: profile.containers\nversion: 1.0.0\nextends: profile.stub\nextension: ext.imaging\ncontainers: {agent: {image: {bundle: tools, build: {context: app}}}, services: {db: {image: {pull: x}}}}\n",
	}))
	for _, profile := range []string{"profile.image", "profile.containers"} {
		names = nil
		if _, err := b.Create(t.Context(), engine.Request{Profile: profile, Name: profile, TTL: "10m"}, nil, nil); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(names, "app/Dockerfile") {
			t.Errorf("%s is built from %q", profile, names)
		}
	}
	_, err := b.Create(t.Context(), engine.Request{Profile: "profile.missing", Name: "m", TTL: "10m"}, nil, nil)
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "none") {
		t.Errorf("a bundle that is not there: %v", err)
	}
}

func filesOf(t testing.TB, src extensions.WorkspaceSource) (names []string) {
	t.Helper()
	r, err := src.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}
