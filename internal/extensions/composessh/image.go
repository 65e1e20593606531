package composessh

import (
	"context"
	"io"
	"maps"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// preparedTime is how long an image that was built waits for its first sandbox.
const preparedTime = 15 * time.Minute

// prepareFiles make up the operation prepare.
var prepareFiles = []string{"lease", "timer", "folder", "receive", "remove", "memory", "toolbox", "images", "pull", "build",
	"engine", "prepare"}

// PrepareImage implements extensions.ImagePreparer with one exec, in a folder of its own on the host.
func (b *Backend) PrepareImage(ctx context.Context, spec extensions.Spec) (string, error) {
	digest, err := b.prepareImage(ctx, spec)
	return digest, failed("prepare-image", spec.ID, err)
}

func (b *Backend) prepareImage(ctx context.Context, spec extensions.Spec) (string, error) {
	if err := accept(b.settings, spec); err != nil {
		return "", err
	}
	if spec.FromSandbox != "" { // it runs what its source runs, on the same host
		return "sha256:" + spec.ImageKey(), nil
	}
	p, err := b.plan(ctx, spec)
	if err != nil {
		return "", err
	}
	if err := p.packBuilds(ctx); err != nil {
		return "", err
	}
	all, err := loginsFor(ctx, spec.Registries, p.rendered)
	if err != nil {
		return "", err
	}
	digest, limit := p.rendered.PrepareDigest(), b.limit(ctx)
	vars := map[string]string{
		"payload_size": formatInt(p.payload.size), "payload_digest": p.payload.digest,
		"limit": limit, "lock_wait": limit, // somebody else may be preparing the same
		"prepared_time": centis(preparedTime),
	}
	maps.Copy(vars, imageVars(p.rendered, p.buildBase(), p.keepsImages(), all))
	yes := newConsent(ctx)
	body := p.payload.open(ctx)
	defer func() { _ = body.Close() }()
	_, err = b.call(ctx, operation{id: extensions.ID("prepare-" + digest[len("sha256:"):][:32]), files: prepareFiles, vars: vars,
		payload: io.MultiReader(body, yes), progress: func(line string) {
			yes.progress(line)
			tellImage(ctx, line)
		}})
	return digest, err
}

// packBuilds assembles what the host needs to build the images.
func (p *plan) packBuilds(ctx context.Context) error {
	p.payload = payload{files: []payloadFile{{"reaper.sh", []byte(script(reaperFiles...))}}}
	var workspace, bundle bool
	for _, x := range p.rendered.Builds {
		bundle = bundle || x.Bundled || p.bundled
		workspace = workspace || !x.Bundled && !p.bundled
	}
	if src := p.spec.Workspace.Source; workspace && src != nil {
		p.payload.trees = append(p.payload.trees, payloadTree{name: p.buildBase(), source: src})
	}
	if src := p.bundle(); bundle && src != nil {
		p.payload.trees = append(p.payload.trees, payloadTree{name: "bundle", source: src})
	}
	return p.payload.measure(ctx)
}
