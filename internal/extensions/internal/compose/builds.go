package compose

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// Limits of each build step if the sandbox's resources set none.
const (
	DefaultBuildMemory = 2 << 30 // bytes
	DefaultBuildPids   = 1024    // processes and threads
)

// ArgParentTag is the build argument that names the image a stage builds on.
const ArgParentTag = "PARENT_TAG"

// builds lists what to build and pull, and remembers the tags.
func (r *renderer) builds() error {
	r.found = newFindings(nil)
	r.found.binding = cmp.Or(r.o.Binding, r.found.binding)
	for _, name := range sortedKeys(r.p.Compose.Services) {
		s := r.p.Compose.Services[name]
		var err error
		switch {
		case len(r.p.stages[name].list) > 0:
			err = r.stages(name, r.p.stages[name])
		case s.Build != nil:
			var b Build
			if b, err = r.composeBuild(name, s); err == nil {
				r.built[name], err = r.build(b)
			}
		case s.Image == "":
			err = extensions.Errorf(extensions.KindInvalid, "service %q has neither an image nor a build", name).At("compose")
		default:
			r.pull(s)
		}
		if err != nil {
			return err
		}
	}
	return r.found.err()
}

func (r *renderer) pull(s types.ServiceConfig) {
	p := Pull{Image: ociimage.ByName(s.Image), Platform: s.Platform, Always: s.PullPolicy == types.PullPolicyAlways,
		Never: s.PullPolicy == types.PullPolicyNever}
	if !slices.Contains(r.out.Pulls, p) {
		r.out.Pulls = append(r.out.Pulls, p)
	}
}

// composeBuild reads a service's build. It refuses what only some builders support, and drops what only
// affects names and caches.
func (r *renderer) composeBuild(name string, s types.ServiceConfig) (Build, error) {
	c := s.Build
	for what, set := range map[string]bool{
		"ssh": len(c.SSH) > 0, "secrets": len(c.Secrets) > 0, "additional_contexts": len(c.AdditionalContexts) > 0,
		"entitlements": len(c.Entitlements) > 0, "privileged": c.Privileged, "isolation": c.Isolation != "",
		"ulimits": len(c.Ulimits) > 0, "platforms": len(c.Platforms) > 1,
	} {
		if set {
			return Build{}, extensions.Errorf(extensions.KindInvalid, "the build of service %q uses %s, which some hosts do not support", name,
				what).
				At("compose").WithRemedy("build the image elsewhere and set image: to it")
		}
	}
	context, inside := below(r.root, c.Context)
	if !inside {
		return Build{}, outside(name, c.Context)
	}
	b := Build{Service: name, Bundled: r.o.Bundled, Context: context, Text: c.DockerfileInline, Target: c.Target, Platform: s.Platform,
		ShmBytes: int64(c.ShmSize), Args: map[string]string{}}
	if len(c.Platforms) == 1 {
		b.Platform = c.Platforms[0]
	}
	if b.Text == "" {
		file := cmp.Or(c.Dockerfile, "Dockerfile")
		if !path.IsAbs(file) {
			file = path.Join(context, file)
		}
		if b.Dockerfile, inside = below(r.root, file); !inside {
			return Build{}, outside(name, c.Dockerfile)
		}
	}
	for k, v := range c.Args {
		if v != nil {
			b.Args[k] = *v
		}
	}
	for _, host := range sortedKeys(c.ExtraHosts) {
		for _, address := range c.ExtraHosts[host] {
			b.ExtraHosts = append(b.ExtraHosts, host+":"+address)
		}
	}
	b.Network = r.buildNetwork(c.Network)
	return b, nil
}

func (r *renderer) buildNetwork(asked string) string {
	if asked == "none" || r.o.Network != NetworkAllow && !r.o.BuildNetwork {
		return "none"
	}
	return ""
}

// stages builds one image after another. A stage whose parent_tag is the tag of an earlier stage builds on
// that stage's image: FROM and COPY --from of the parent's tag become the image's real tag, which is also
// passed as the argument PARENT_TAG. Any other parent_tag is an image to pull.
func (r *renderer) stages(service string, all stages) error {
	byTag := map[string]Build{}
	for _, s := range all.list {
		b, err := r.stage(service, s, all.bundled, byTag)
		if err != nil {
			return err
		}
		tag, err := r.build(b)
		if err != nil {
			return err
		}
		b = r.out.Builds[slices.IndexFunc(r.out.Builds, func(o Build) bool { return o.Tag == tag })]
		if s.Tag != "" {
			byTag[s.Tag] = b
		}
		r.built[service] = tag
	}
	return nil
}

func (r *renderer) stage(service string, s extensions.BuildStage, bundled bool, byTag map[string]Build) (Build, error) {
	context, inside := below(r.root, s.Context)
	if !inside || path.IsAbs(s.Context) || strings.Contains(s.Context, "://") {
		return Build{}, outside(service, s.Context)
	}
	file, inside := below(r.root, path.Join(context, cmp.Or(s.Dockerfile, "Dockerfile")))
	if !inside || path.IsAbs(s.Dockerfile) {
		return Build{}, outside(service, s.Dockerfile)
	}
	b := Build{Service: service, Bundled: bundled, Context: context, Dockerfile: file, Target: s.Target, Args: map[string]string{},
		Network: r.buildNetwork(""), cacheKey: s.CacheKey}
	for k, v := range s.Args {
		b.Args[k] = v
	}
	if s.ParentTag == "" {
		return b, nil
	}
	b.Args[ArgParentTag], b.onto = s.ParentTag, s.ParentTag
	if parent, ok := byTag[s.ParentTag]; ok {
		src := r.p.source(bundled)
		if src == nil {
			return Build{}, noFiles(service)
		}
		text, err := src.ReadFile(file)
		if err != nil {
			return Build{}, unreadableDockerfile(file, err)
		}
		b.Text, b.Parent, b.Args[ArgParentTag] = ociimage.Onto(string(text), s.ParentTag, parent.Tag), parent.Digest, parent.Tag
	}
	return b, nil
}

// build adds a build unless an equal one exists, and returns its tag.
func (r *renderer) build(b Build) (string, error) {
	src := r.p.source(b.Bundled)
	if src == nil {
		return "", noFiles(b.Service)
	}
	// The host accepts only the real name.
	for _, name := range []*string{&b.Context, &b.Dockerfile} {
		if *name == "" {
			continue
		}
		if e := src.Lookup(*name); e != nil {
			*name = e.Name
		} else {
			return "", extensions.Errorf(extensions.KindInvalid, "the build of %q uses %q, which is not among the stack's own files", b.Service,
				*name).At("image.build")
		}
	}
	tree, err := src.TreeDigest(b.Context, b.Dockerfile)
	if err != nil {
		return "", err
	}
	if err := r.judge(&b); err != nil {
		return "", err
	}
	b.Digest = b.digest(tree)
	if b.Tag = ociimage.Tag(b.Digest); r.o.Repository != "" {
		b.Tag = r.o.Repository + ":" + b.Digest
	}
	if !slices.ContainsFunc(r.out.Builds, func(o Build) bool { return o.Digest == b.Digest }) {
		r.out.Builds = append(r.out.Builds, b)
	}
	return b.Tag, nil
}

// judge reads what is built, and sets the limits of its steps.
func (r *renderer) judge(b *Build) error {
	text, where := b.Text, "services."+b.Service+".build"
	if b.Dockerfile != "" {
		where += " " + b.Dockerfile
	}
	if text == "" {
		raw, err := r.p.source(b.Bundled).ReadFile(b.Dockerfile)
		if err != nil {
			return unreadableDockerfile(b.Dockerfile, err)
		}
		text = string(raw)
	}
	b.Bases, b.Instructions = judgeDockerfile(r.found, where, text, *b)
	b.MemoryBytes, b.Pids = DefaultBuildMemory, DefaultBuildPids
	if m := r.o.Resources.MemoryMB; m != nil && *m > 0 {
		b.MemoryBytes = *m << 20
	}
	if n := r.o.Resources.Pids; n != nil && *n > 0 {
		b.Pids = *n
	}
	if c := r.o.Resources.CPU; c != nil && *c > 0 {
		b.MilliCPU = int64(*c)
	}
	return nil
}

// digest covers everything that determines the image, as far as it is known here: an image that FROM names by
// a moving tag is not.
func (b Build) digest(tree string) string {
	b.Service, b.Tag, b.Digest = "", "", ""
	b.Bases, b.MemoryBytes, b.MilliCPU, b.Pids = nil, 0, 0, 0
	return ociimage.Key(struct {
		Build
		Tree, CacheKey string
	}{b, tree, b.cacheKey})
}

func noFiles(service string) error {
	return extensions.Errorf(extensions.KindInvalid, "service %q has a build but no files to build it from", service).
		At("image.build").WithRemedy("give the sandbox a workspace or a bundle")
}

func unreadableDockerfile(name string, err error) error {
	return extensions.Errorf(extensions.KindInvalid, "the Dockerfile %s cannot be read: %w", extensions.Clean(name, 200), err).
		At("image.build")
}

func outside(service, name string) error {
	return extensions.Errorf(extensions.KindInvalid, "the build of %q uses %q, which is not a folder of the stack's own files", service, name).
		At("image.build").WithRemedy("give a path relative to the root of the workspace or the bundle")
}
