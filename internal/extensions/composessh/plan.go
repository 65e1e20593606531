package composessh

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// plan is a spec ready to send: policed, rendered and packed.
type plan struct {
	spec     extensions.Spec
	image    *extensions.Image // the spec's, else the binding's
	options  options
	access   string
	walls    walls
	bundled  bool
	project  *compose.Project
	rendered compose.Rendered
	payload  payload
}

func newPlan(s settings, spec extensions.Spec) (*plan, error) {
	o, err := s.parseOptions(spec.Options)
	p := &plan{spec: spec, image: spec.Image, options: o, access: spec.Workspace.Access}
	if p.image == nil {
		p.image = &extensions.Image{Pull: s.defaultImage}
	}
	if p.access == "" {
		p.access = extensions.AccessRW
	}
	return p, err
}

// accept refuses what no host can honor, without looking at files.
func accept(s settings, spec extensions.Spec) error {
	if _, err := extensions.ParseID(string(spec.ID)); err != nil {
		return err
	}
	if !spec.Deadline.After(time.Now()) {
		return extensions.Errorf(extensions.KindInvalid, "the deadline %s has passed", spec.Deadline.UTC().Format(time.RFC3339)).At("ttl")
	}
	return acceptRequest(s, spec)
}

// acceptRequest is the part of accept that does not depend on identity and time.
func acceptRequest(s settings, spec extensions.Spec) error {
	unsupported := func(remedy, format string, args ...any) error {
		return extensions.Errorf(extensions.KindUnsupported, format, args...).WithRemedy("%s", remedy)
	}
	switch {
	case spec.Isolation != "" && !extensions.IsolationContainer.Meets(spec.Isolation):
		return unsupported("choose an extension with virtual machines", "isolation level %q is stronger than a container's", spec.Isolation)
	case spec.Image == nil && spec.Compose == nil && spec.Containers == nil && s.defaultImage == "":
		return extensions.Errorf(extensions.KindInvalid, "the profile has no image, compose or containers, so there is nothing to run").
			WithRemedy("set one of them in the profile, or config.default_image of the binding")
	case !spec.Entrypoint.Idle() && (spec.Compose != nil || spec.Containers != nil):
		return extensions.Errorf(extensions.KindInvalid, "the services of a stack have entrypoints of their own").At("entrypoint").
			WithRemedy("set entrypoint or command of the service, or use image")
	case !slices.Contains([]string{"", extensions.AccessNone, extensions.AccessRO, extensions.AccessRW}, spec.Workspace.Access):
		return extensions.Errorf(extensions.KindInvalid, "workspace.access %q is unknown", spec.Workspace.Access)
	}
	for _, m := range []map[string]string{spec.Toolchain.Env, spec.Env} {
		for k, v := range m {
			if !extensions.ValidEnvName(k) || strings.ContainsRune(v, 0) {
				return extensions.Errorf(extensions.KindInvalid, "the environment variable %q has an invalid name or a NUL byte", k)
			}
		}
	}
	return spec.CheckSecrets()
}

// environment returns the variables that the spec sets inside, secrets apart.
func environment(spec extensions.Spec) map[string]string {
	env := map[string]string{"SANDBOXER_ID": string(spec.ID)}
	maps.Copy(env, spec.Toolchain.Env)
	maps.Copy(env, spec.Env)
	return env
}

// variables returns what interpolation of the stack's files sees.
func variables(spec extensions.Spec) map[string]string {
	env := environment(spec)
	maps.Copy(env, spec.Compose.Variables)
	return env
}

// load reads and polices the stack. A source that is not known yet yields nil.
func (p *plan) load(ctx context.Context) error {
	var err error
	switch s := p.spec; {
	case s.Compose != nil:
		src := s.Workspace.Source
		if p.bundled = s.Compose.Bundle != ""; p.bundled {
			src = s.Compose.BundleSource
		}
		if src == nil {
			return nil
		}
		p.project, err = compose.Load(ctx, compose.Input{
			Source: src, Files: s.Compose.Files, Profiles: s.Compose.Profiles, EnvFiles: s.Compose.EnvFiles, Env: variables(s),
			SecretNames: s.SecretNames, Allow: p.options.allow, Deny: p.walls.mode != compose.NetworkAllow,
			Guarded: p.walls.mode == compose.NetworkGuarded, Publish: p.publish(),
		})
	case s.Containers != nil:
		p.project, err = compose.FromContainers(ctx, *s.Containers, s.Workspace.Source)
	default:
		if p.project, err = compose.FromImage(ctx, *p.image, s.Workspace.Source); err == nil && !s.Entrypoint.Idle() {
			p.project.Enter(s.Entrypoint, p.workDir())
		}
	}
	return err
}

// workDir is the workspace's path inside; "" if there is none.
func (p *plan) workDir() string {
	if p.access == extensions.AccessNone {
		return ""
	}
	return p.options.workspacePath
}

// reachIn reports whether the profile asks for published ports although the network is denied: that takes
// networks the host can connect to.
func (p *plan) reachIn() bool {
	return p.options.publish == publishAsWritten || p.options.publish == publishLoopback
}

// publish says what happens to published ports if the profile does not: they go to the loopback, or nowhere
// under default deny, since such a network cannot publish.
func (p *plan) publish() string {
	switch {
	case p.options.publish != "":
		return p.options.publish
	case p.walls.mode != compose.NetworkAllow:
		return publishNone
	}
	return publishLoopback
}

// service returns exec's default service.
func (p *plan) service() string {
	if p.spec.Compose != nil {
		return p.spec.Compose.Service
	}
	return compose.AgentService
}

// render builds the model, the same for every engine.
func (p *plan) render() (compose.Rendered, error) {
	all := labels(p.spec)
	o := compose.RenderOptions{
		ID: p.spec.ID, Labels: all, Service: p.service(), ReadOnly: p.access == extensions.AccessRO, Bundled: p.bundled,
		Env: environment(p.spec), SecretNames: p.spec.SecretNames,
		SecretFiles: p.spec.Delivery() == extensions.SecretsFile, Resources: p.spec.Resources, GPU: p.spec.Resources.GPU != nil,
		BuildNetwork: p.options.buildNetwork == "default",
	}
	o.Mount = p.workDir()
	p.walls.options(&o, p.project)
	r, err := p.project.Render(o)
	if err != nil {
		return r, err
	}
	return p.walls.apply(r, all)
}

// labels returns the spec's labels with those every sandbox carries.
func labels(spec extensions.Spec) map[string]string {
	l := map[string]string{
		extensions.LabelID: string(spec.ID), extensions.LabelAccount: spec.Account,
		extensions.LabelGeneration: formatInt(spec.Generation), extensions.LabelSpecHash: spec.Hash(),
		extensions.LabelInitialExpires: spec.Deadline.UTC().Format(time.RFC3339),
	}
	maps.Copy(l, spec.Labels)
	return l
}
