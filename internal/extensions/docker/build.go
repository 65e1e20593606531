package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// Labels of what is built: the image has its key, and every layer says that it is of a build, so that what a killed
// one left is found.
const (
	labelBuild = "sandboxer.build"
	labelLayer = "sandboxer.layer"
)

// stepEnds is how long the container of a step that was cut off may take to go before it is looked for again.
const stepEnds = 250 * time.Millisecond

// buildTries bounds how often a build is repeated because another one's cleanup took a layer that it had found.
const buildTries = 4

// building has a turn per engine and key, so that one process builds an image once.
var building sync.Map

func turn(ctx context.Context, key string) (done func(), err error) {
	free := make(chan struct{}, 1)
	held, _ := building.LoadOrStore(key, free)
	mine := held.(chan struct{})
	select {
	case mine <- struct{}{}:
		return func() { <-mine }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// built finds the image of a build, and makes it if it is not there. A name proves nothing; the label is ours, as no
// Dockerfile may set it.
func (b *Backend) built(ctx context.Context, p *plan, x compose.Build) (client.ImageInspectResult, error) {
	info, err := b.engine.about(ctx)
	if err != nil {
		return client.ImageInspectResult{}, err
	}
	done, err := turn(ctx, info.ID+x.Digest)
	if err != nil {
		return client.ImageInspectResult{}, err
	}
	defer done()
	if err := b.keepBuilt(ctx, p, x); err != nil {
		return client.ImageInspectResult{}, err
	}
	r, err := b.engine.ImageInspect(ctx, x.Tag)
	if err == nil && isBuilt(r, x.Digest) || err != nil && !errdefs.IsNotFound(err) {
		return r, err
	}
	for _, base := range x.Bases {
		if err := b.acceptBase(ctx, p.spec, base); err != nil {
			return r, err
		}
	}
	before, err := b.topLayers(ctx)
	if err != nil {
		return r, err
	}
	w := &watch{backend: b, build: x, subject: "Building the image of " + x.Service, since: time.Now()}
	extensions.Progress(ctx, w.subject, "")
	b.step("build")
	for try := 1; ; try++ {
		had := len(w.layers)
		if err = b.build(ctx, p, x, w); err == nil || try == buildTries || !lostOwn(err) && !b.lostLayer(ctx, w.layers[had:]) {
			break
		}
	}
	patience := time.Duration(0)
	if err != nil { // the engine ends the container of a step after its answer, and its layer is in use until then
		patience = 20 * stepEnds
	}
	b.sweepLayers(ctx, w.layers, before, patience)
	if err != nil {
		return r, w.judge(ctx, err)
	}
	if r, err = b.engine.ImageInspect(ctx, x.Tag); err == nil && !isBuilt(r, x.Digest) {
		err = extensions.Errorf(extensions.KindUnavailable, "another image took the name of the one that was built")
	}
	if err == nil {
		err = b.keepBuilt(ctx, p, x)
	}
	return r, err
}

func isBuilt(r client.ImageInspectResult, digest string) bool {
	return r.Config != nil && r.Config.Labels[labelBuild] == digest
}

// acceptBase puts a base on the engine, and refuses one that brings instructions for the builder, which nobody has
// judged.
func (b *Backend) acceptBase(ctx context.Context, spec extensions.Spec, base compose.Base) error {
	r, err := b.have(ctx, spec, base)
	if err != nil {
		return err
	}
	if r.Config != nil && len(r.Config.OnBuild) > 0 {
		return extensions.Errorf(extensions.KindInvalid, "the base image %s has ONBUILD instructions, which sandboxer cannot check",
			extensions.Clean(base.Image, 200)).At("image.build").WithRemedy("move their content into the Dockerfile, and use another base image")
	}
	return nil
}

// build runs one build to its end.
func (b *Backend) build(ctx context.Context, p *plan, x compose.Build, w *watch) error {
	text, err := p.rendered.Dockerfile(x)
	if err == nil {
		text, err = compose.Labelled(text, labelLayer, "1")
	}
	if err != nil {
		return err
	}
	r, in := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := p.rendered.WriteContext(ctx, x, text, in)
		_ = in.CloseWithError(err)
		wrote <- err
	}()
	out, err := b.engine.ImageBuild(ctx, r, p.buildOptions(x))
	if err == nil {
		err = w.read(ctx, out.Body)
		_ = out.Body.Close()
	}
	_ = r.CloseWithError(errStopped)
	if failed := <-wrote; failed != nil && !errors.Is(failed, errStopped) {
		return failed
	}
	return err
}

func (p *plan) buildOptions(x compose.Build) client.ImageBuildOptions {
	o := client.ImageBuildOptions{
		Tags: []string{x.Tag}, Dockerfile: compose.ContextDockerfile, Target: x.Target, BuildArgs: map[string]*string{},
		Labels: map[string]string{labelBuild: x.Digest, labelLayer: "1"}, NetworkMode: x.Network, ExtraHosts: x.ExtraHosts,
		ShmSize: x.ShmBytes, Remove: true, ForceRemove: true, Version: build.BuilderV1,
		Memory: x.MemoryBytes, MemorySwap: x.MemoryBytes,
		Ulimits: []*container.Ulimit{{Name: "nofile", Soft: 4096, Hard: 4096}}, // not above the engine's own
	}
	if x.MilliCPU > 0 {
		o.CPUPeriod, o.CPUQuota = 100_000, x.MilliCPU*100
	}
	for name, value := range x.Args {
		o.BuildArgs[name] = &value
	}
	if os, arch, ok := strings.Cut(x.Platform, "/"); ok {
		o.Platforms = []ocispec.Platform{{OS: os, Architecture: arch}}
	}
	if p.options.builder == builderBuildKit {
		o.Version = build.BuilderBuildKit
	}
	return o
}

// lostOwn reports that the builder lost the layer of a step before it told of it, as it can where containerd keeps the
// images.
func lostOwn(err error) bool { return strings.HasPrefix(err.Error(), `unable to find image "sha256:`) }

// lostLayer reports that another build's cleanup removed a layer of a build that failed, which had found or made it.
func (b *Backend) lostLayer(ctx context.Context, layers []string) bool {
	return slices.ContainsFunc(layers, func(id string) bool {
		_, err := b.engine.ImageInspect(ctx, id)
		return errdefs.IsNotFound(err)
	})
}

// bound gives the container of a build's step its limit of processes, for which the builder has no option. A step can
// print any name: only a container that this build made is changed.
func (b *Backend) bound(ctx context.Context, id string, pids int64, since time.Time) {
	r, err := b.engine.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil || r.Container.Config == nil {
		return
	}
	labels := r.Container.Config.Labels
	made, err := time.Parse(time.RFC3339Nano, r.Container.Created)
	if err != nil || made.Before(since.Add(-time.Minute)) || labels[labelLayer] == "" || labels[extensions.LabelID] != "" {
		return
	}
	_, _ = b.engine.ContainerUpdate(ctx, id, client.ContainerUpdateOptions{Resources: &container.Resources{PidsLimit: &pids}})
}

// judge classifies a failed build.
func (w *watch) judge(ctx context.Context, err error) error {
	var known *extensions.Error
	if ctx.Err() != nil || noEngine(err) || errors.As(err, &known) {
		return err
	}
	text := err.Error()
	fail := func(kind extensions.Kind, what, remedy string) error {
		said := extensions.Clean(text, maxMessage)
		if tail := w.tail(); tail != "" {
			said += "\n" + tail
		}
		return extensions.Errorf(kind, "%s: %s", what, said).At("image.build").WithRemedy("%s", remedy)
	}
	switch {
	case strings.Contains(text, "no space left on device"):
		return fail(extensions.KindExhausted, "the engine has no disk space left to build the image",
			"free some disk space where the engine runs")
	case lost(err):
		return fail(extensions.KindUnavailable, "the build broke off", "check the engine, and try again")
	case strings.Contains(text, "returned a non-zero code"), strings.Contains(text, "did not complete successfully"),
		strings.Contains(text, "executor failed running"):
		remedy := "correct the Dockerfile"
		if w.build.Network == "none" {
			remedy = fmt.Sprintf("correct the Dockerfile; builds have no network under network.default deny unless the option build_network is %q",
				buildNetworkDefault)
		}
		return fail(extensions.KindInvalid, "a step of the image build failed", remedy)
	}
	return fail(extensions.KindInvalid, "the image could not be built", "correct the Dockerfile")
}
