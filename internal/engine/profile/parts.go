package profile

import (
	"maps"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// isolationOf returns the stronger of the profile's level and its route's requirement: a floor that no
// later step can lower.
func isolationOf(p *Profile) extensions.Isolation {
	floor := defaultIsolation
	if p.Isolation != nil {
		floor = extensions.Isolation(value(p.Isolation.Level, string(floor)))
	}
	if p.Route != nil && p.Route.Constraints != nil {
		if must := extensions.Isolation(value(p.Route.Constraints.RequireIsolation, "")); must != "" && !floor.Meets(must) {
			floor = must
		}
	}
	return floor
}

func networkOf(p *Profile) extensions.Network {
	out := extensions.Network{Default: networkDeny}
	if p.Network == nil {
		return out
	}
	out.Default = value(p.Network.Default, networkDeny)
	for _, s := range p.Network.Egress {
		if rule, err := ParseEgress(s); err == nil { // Parse refused the others
			out.Egress = append(out.Egress, rule)
		}
	}
	return out
}

func workspaceOf(p *Profile) extensions.Workspace {
	w := value(p.Workspace, Workspace{})
	return extensions.Workspace{Mode: value(w.Mode, extensions.WorkspaceRemoteCanonical), Access: value(w.Access, extensions.AccessRW)}
}

func imageOf(i *Image) *extensions.Image {
	if i == nil {
		return nil
	}
	out := &extensions.Image{Pull: value(i.Pull, ""), Keep: value(i.Keep, false)}
	if i.Pull == nil { // what is inherited beside it has no use
		out.Bundle = value(i.Bundle, "")
	}
	if i.Build != nil {
		stage := stageOf(*i.Build)
		out.Build = &stage
	}
	for _, s := range i.Stages {
		out.Stages = append(out.Stages, stageOf(s))
	}
	return out
}

func stageOf(s Stage) extensions.BuildStage {
	return extensions.BuildStage{
		Context: value(s.Context, ""), Dockerfile: value(s.Dockerfile, ""), Target: value(s.Target, ""), Args: maps.Clone(s.Args),
		Tag: value(s.Tag, ""), ParentTag: value(s.ParentTag, ""), CacheKey: value(s.CacheKey, ""),
	}
}

func composeOf(c *Compose) *extensions.Compose {
	if c == nil {
		return nil
	}
	return &extensions.Compose{
		Files: slices.Clone([]string(c.File)), Service: value(c.Service, ""), Profiles: slices.Clone(c.Profiles),
		EnvFiles: slices.Clone(c.EnvFiles), Variables: maps.Clone(c.Variables), Bundle: value(c.Bundle, ""),
	}
}

func containersOf(c *Containers) *extensions.Containers {
	if c == nil {
		return nil
	}
	out := &extensions.Containers{Agent: containerOf(value(c.Agent, Container{}))}
	for name, service := range c.Services {
		if out.Services == nil {
			out.Services = map[string]extensions.Container{}
		}
		out.Services[name] = containerOf(service)
	}
	return out
}

func containerOf(c Container) extensions.Container {
	return extensions.Container{
		Image: value(imageOf(c.Image), extensions.Image{}), Command: slices.Clone(c.Command),
		Hostname: value(c.Hostname, ""), Environment: maps.Clone(c.Environment),
	}
}

func resourcesOf(r *Resources) extensions.Resources {
	if r == nil {
		return extensions.Resources{}
	}
	out := extensions.Resources{
		MemoryMB: copied(r.MemoryMB), DiskMB: copied(r.DiskMB), Pids: copied(r.Pids), BestEffort: value(r.BestEffort, false),
	}
	if r.CPU != nil {
		milli := extensions.Milli(*r.CPU)
		out.CPU = &milli
	}
	if r.GPU != nil {
		out.GPU = &extensions.GPU{Model: r.GPU.Model, Count: r.GPU.Count}
	}
	return out
}

func probeOf(r *Readiness) *extensions.Probe {
	if r == nil || r.Command == nil && r.HTTP == nil && r.TCP == nil {
		return nil
	}
	return &extensions.Probe{
		Command: slices.Clone(r.Command), HTTP: value(r.HTTP, ""), TCP: value(r.TCP, ""), Service: value(r.Service, ""),
		Interval: extensions.Duration(value(r.Interval, Duration(defaultProbeInterval))),
		Timeout:  extensions.Duration(value(r.Timeout, Duration(defaultProbeTimeout))),
	}
}

// settleOf returns how long services must have run; only a stack starts any by itself.
func settleOf(p *Profile) extensions.Duration {
	if p.Compose == nil && p.Containers == nil {
		return 0
	}
	settle := Duration(extensions.SettleDefault)
	if p.Readiness != nil {
		settle = value(p.Readiness.Settle, settle)
	}
	return extensions.Duration(settle)
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
