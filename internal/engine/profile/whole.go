package profile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// checkWhole finds contradictions in a profile with its ancestors merged in.
func checkWhole(p *Profile) error {
	c := newChecker(p)
	c.exactlyOne(true, nil, map[string]bool{"image": p.Image != nil, "compose": p.Compose != nil, "containers": p.Containers != nil})
	if p.Image != nil {
		c.wholeImage(p.Image, "image")
	}
	if p.Compose != nil && len(p.Compose.File) == 0 {
		c.fail([]string{"compose"}, "compose.file is required")
	}
	if e := p.Entrypoint; e != nil && e.Mode != "idle" && (p.Compose != nil || p.Containers != nil) {
		c.fail([]string{"entrypoint"}, "a stack's services have entrypoints of their own: set entrypoint or command of the service instead, "+
			"or use image")
	}
	c.wholeContainers()
	c.wholeBundles()
	c.wholeLife()
	c.wholeInputs()
	c.wholePlaceholders()
	if r := p.Readiness; r != nil {
		asks := r.Service != nil || r.Interval != nil || r.Timeout != nil
		c.exactlyOne(!asks && r.Settle != nil, []string{"readiness"},
			map[string]bool{"command": r.Command != nil, "http": r.HTTP != nil, "tcp": r.TCP != nil})
	}
	if r := p.Route; r != nil && r.Strategy != nil && *r.Strategy == StrategyExplicit && p.Extension == nil && len(r.Fallback) == 0 {
		c.fail([]string{"route", "strategy"}, "strategy explicit needs an extension or a fallback list")
	}
	if w := p.Workspace; w != nil && w.Access != nil && *w.Access == "none" && w.Mode != nil && *w.Mode == "mirror" {
		c.fail([]string{"workspace"}, "mode mirror brings the workspace back, but access none gives the sandbox no workspace: choose "+
			"remote-canonical or another access")
	}
	return c.errs.Err()
}

// exactlyOne refuses two alternatives, and none unless noneToo.
func (c *checker) exactlyOne(noneToo bool, path []string, set map[string]bool) {
	names := slices.Sorted(maps.Keys(set))
	var given []string
	for _, n := range names {
		if set[n] {
			given = append(given, n)
		}
	}
	switch {
	case len(given) > 1:
		at := append(slices.Clone(path), given[len(given)-1])
		c.fail(at, "%s are set together: choose one", strings.Join(given, " and "))
	case len(given) == 0 && !noneToo:
		c.fail(path, "%s: one of %s is required", strings.Join(path, "."), strings.Join(names, ", "))
	}
}

func (c *checker) wholeImage(i *Image, path ...string) {
	before := len(c.errs)
	c.exactlyOne(false, path, map[string]bool{"pull": i.Pull != nil, "build": i.Build != nil, "stages": i.Stages != nil})
	if i.Build != nil && i.Build.Context == nil {
		c.fail(append(slices.Clone(path), "build"), "build.context is required")
	}
	if i.Stages != nil && len(i.Stages) == 0 {
		c.fail(append(slices.Clone(path), "stages"), "stages is empty")
	}
	for n, s := range i.Stages {
		at := append(slices.Clone(path), "stages", strconv.Itoa(n))
		if s.Context == nil {
			c.fail(at, "a stage's context is required")
		}
		if s.Tag == nil {
			c.fail(at, "a stage's tag is required: the next stage and the sandbox refer to it")
		}
	}
	if len(c.errs) > before { // said with its position
		return
	}
	if at, err := imageOf(i).Check(); err != nil {
		c.fail(slices.Concat(path, at), "%s", strictyaml.Message(err))
	}
}

// wholeBundles refuses images from several bundles.
func (c *checker) wholeBundles() {
	first := ""
	note := func(i *Image, path ...string) {
		if i == nil || i.Bundle == nil {
			return
		}
		if first != "" && first != *i.Bundle {
			c.fail(append(slices.Clone(path), "bundle"), "another image comes from the bundle %s: put all contexts into one folder", quoted(first))
		}
		first = *i.Bundle
	}
	note(c.p.Image, "image")
	if k := c.p.Containers; k != nil {
		note(value(k.Agent, Container{}).Image, "containers", "agent", "image")
		for _, name := range slices.Sorted(maps.Keys(k.Services)) {
			note(k.Services[name].Image, "containers", "services", name, "image")
		}
	}
}

func (c *checker) wholeContainers() {
	k := c.p.Containers
	if k == nil {
		return
	}
	if k.Agent == nil {
		c.fail([]string{"containers"}, "containers.agent is required")
	} else {
		c.needImage(*k.Agent, "containers", "agent")
	}
	for _, name := range slices.Sorted(maps.Keys(k.Services)) {
		if name == "agent" {
			c.fail([]string{"containers", "services", name}, "a service cannot be named agent")
		}
		c.needImage(k.Services[name], "containers", "services", name)
	}
}

func (c *checker) needImage(k Container, path ...string) {
	if k.Image == nil {
		c.fail(path, "%s.image is required", strings.Join(path, "."))
		return
	}
	c.wholeImage(k.Image, append(slices.Clone(path), "image")...)
}

func (c *checker) wholeLife() {
	t := c.p.TTL
	if t == nil || t.Max == nil {
		return
	}
	most := FormatDuration(duration(t.Max))
	if d := t.Default; d != nil && *d > *t.Max {
		c.fail([]string{"ttl", "default"}, "ttl.default %s is above ttl.max %s", FormatDuration(duration(d)), most)
	}
	if d := t.IdleReap; d != nil && *d >= *t.Max {
		c.fail([]string{"ttl", "idle_reap"}, "ttl.idle_reap %s is not below ttl.max %s, so nothing would ever be idle for long enough",
			FormatDuration(duration(d)), most)
	}
}
