package e2b

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

// templateForm is part of every key: another translation of Dockerfiles makes other templates.
const templateForm = 1

// A template of ours is named by all that determines it. One that is kept outlives its sandboxes.
const (
	templatePrefix = "sandboxer-"
	keptPrefix     = templatePrefix + "keep-"
)

var passingTemplate = regexp.MustCompile(`^(?:[^/]+/)?` + templatePrefix + `[0-9a-f]{40}(?::[^/]*)?$`)

// unused is how long a template of ours may be without a sandbox before anybody of the team removes it.
const unused = 24 * time.Hour

// built is a template to make: from an image, or by a build.
type built struct {
	name   string
	what   string         // for people
	image  string         // its base; "" = parent
	parent *built         // the stage before it
	build  *compose.Build // nil = the image as it is
	*recipe
	in   compose.Rendered
	size api.TemplateBuildRequestV3
}

// PrepareImage implements extensions.ImagePreparer: the image becomes a template.
func (b *backend) PrepareImage(ctx context.Context, spec extensions.Spec) (string, error) {
	digest, err := b.prepareImage(ctx, spec)
	return digest, failed("prepare-image", spec.ID, err)
}

func (b *backend) prepareImage(ctx context.Context, spec extensions.Spec) (string, error) {
	if err := b.refuseContent(spec); err != nil {
		return "", err
	}
	if spec.Image == nil { // the template exists, or does not
		return "sha256:" + ociimage.Key(b.templateOf(spec)), ctx.Err()
	}
	t, digest, err := planned(ctx, spec)
	if err == nil {
		err = b.ensure(ctx, spec, t)
	}
	return digest, err
}

// planned returns the template that an image becomes, and what the contract calls the image's digest.
func planned(ctx context.Context, spec extensions.Spec) (*built, string, error) {
	r, err := compose.Prepare(ctx, *spec.Image, spec.Workspace.Source)
	if err != nil {
		return nil, "", err
	}
	size := sizeOf(spec.Resources)
	named := func(determines ...any) string {
		prefix := templatePrefix
		if spec.Image.Keep {
			prefix = keptPrefix
		}
		return prefix + ociimage.Key(append(determines, templateForm, size.CpuCount, size.MemoryMB))[:40]
	}
	if len(r.Builds) == 0 {
		image := r.Pulls[0].Image
		return &built{name: named("pull", image), what: "the image " + image, image: image, size: size, recipe: &recipe{}}, r.PrepareDigest(), nil
	}
	all, last := map[string]*built{}, (*built)(nil)
	for i := range r.Builds {
		x := &r.Builds[i]
		t := &built{name: named("build", x.Digest), what: "the image of " + x.Dockerfile, parent: all[x.Parent], build: x, in: r, size: size}
		if t.recipe, err = translate(*x); err != nil {
			return nil, "", err
		}
		if t.parent == nil {
			if len(x.Bases) != 1 {
				return nil, "", extensions.Errorf(extensions.KindUnsupported, "%s builds on one image: %s starts from %d", vendor,
					extensions.Clean(x.Dockerfile, 80), len(x.Bases)).At("image.build").
					WithRemedy("start from one image, with neither scratch nor COPY --from")
			}
			t.image = x.Bases[0].Image
		}
		all[x.Digest], last = t, t
	}
	return last, r.PrepareDigest(), nil
}

// sizeOf is the size of a template: what was asked for, else the vendor's own.
func sizeOf(r extensions.Resources) (size api.TemplateBuildRequestV3) {
	if r.CPU != nil {
		cpus := int32((*r.CPU + 999) / 1000)
		size.CpuCount = &cpus
	}
	if r.MemoryMB != nil {
		memory := int32(*r.MemoryMB)
		size.MemoryMB = &memory
	}
	return size
}

// ensure makes a template unless it is there. One process makes it once, whoever asks; another that makes the same at
// the same time adds a build of the same content to the same template.
func (b *backend) ensure(ctx context.Context, spec extensions.Spec, t *built) error {
	turn, _ := b.making.LoadOrStore(t.name, make(chan struct{}, 1))
	select {
	case turn.(chan struct{}) <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-turn.(chan struct{}) }()
	id, under, err := b.findTemplate(ctx, t.name)
	switch {
	case err != nil || id != "" && under == "":
		return err
	case under != "": // another process makes it
		if err := b.watch(ctx, id, under, t); err == nil || ctx.Err() != nil {
			return err
		}
	}
	b.sweepTemplates(ctx)
	if t.parent != nil {
		if err := b.ensure(ctx, spec, t.parent); err != nil {
			return err
		}
	}
	return b.make(ctx, spec, t)
}

// findTemplate looks a template up by its name: id is "" if none of that name is usable or being made, and under is
// the build that makes it, "" if it is ready.
func (b *backend) findTemplate(ctx context.Context, name string) (id, under string, err error) {
	var found api.TemplateAliasResponse
	a, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"templates", "aliases", name}, Out: &found,
		Is: func() bool { return refName.MatchString(found.TemplateID) }})
	if a.Own && a.Status == http.StatusNotFound {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	var all api.TemplateWithBuilds
	a, err = b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"templates", found.TemplateID},
		Query: url.Values{"limit": {"100"}}, Out: &all, Is: func() bool { return all.TemplateID == found.TemplateID }})
	if a.Own && a.Status == http.StatusNotFound {
		return "", "", nil
	}
	for _, one := range all.Builds {
		switch one.Status {
		case api.TemplateBuildStatusReady:
			return found.TemplateID, "", err
		case api.TemplateBuildStatusBuilding:
			id, under = found.TemplateID, one.BuildID
		}
	}
	return id, under, err
}

// dropTemplate removes a template. In use, it stays for its other sandboxes.
func (b *backend) dropTemplate(ctx context.Context, id string) error {
	err := b.dropped(ctx, id)
	if extensions.IsKind(err, extensions.KindConflict) {
		return nil
	}
	return err
}

// sweepTemplates removes what was built and has had no sandbox for long: its last one was not ended by us, or it never
// had one. What it cannot remove now, a later one does.
func (b *backend) sweepTemplates(ctx context.Context) {
	query := url.Values{"limit": {"100"}}
	_ = rest.Pages(vendor, func(token string) (string, error) {
		if token != "" {
			query.Set("nextToken", token)
		}
		var page []api.Template
		a, err := b.control.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"v2", "templates"}, Query: query, Out: &page})
		if err != nil {
			return "", err
		}
		for _, t := range page {
			last := slices.MaxFunc([]time.Time{t.CreatedAt, t.UpdatedAt, timeOf(t.LastSpawnedAt)}, time.Time.Compare)
			if slices.ContainsFunc(t.Names, passingTemplate.MatchString) && refName.MatchString(t.TemplateID) && time.Since(last) > unused {
				_ = b.dropTemplate(ctx, t.TemplateID)
			}
		}
		return a.Header.Get("X-Next-Token"), nil
	})
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// templateEnds removes the template of a sandbox that has ended, unless it is kept or has others.
func (b *backend) templateEnds(ctx context.Context, d *api.SandboxDetail) (removed []string, err error) {
	name := ""
	if d.Metadata != nil {
		name = (*d.Metadata)[labelTemplate]
	}
	if !passingTemplate.MatchString(name) || strings.Contains(name, "/") {
		return nil, nil
	}
	id, _, err := b.findTemplate(ctx, name)
	if err != nil || id == "" || id != d.TemplateID {
		return nil, err
	}
	if err := b.dropTemplate(ctx, id); err != nil {
		return nil, err
	}
	return []string{"template " + name}, nil
}
