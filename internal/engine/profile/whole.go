package profile

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// checkWhole finds what contradicts itself in a profile with its ancestors
// merged in.
func checkWhole(p *Profile) error {
	c := newChecker(p)
	c.exactlyOne(true, nil, map[string]bool{"image": p.Image != nil, "compose": p.Compose != nil, "containers": p.Containers != nil})
	if p.Image != nil {
		c.wholeImage(p.Image, "image")
	}
	if p.Compose != nil && len(p.Compose.File) == 0 {
		c.fail([]string{"compose"}, "compose.file is required")
	}
	c.wholeContainers()
	c.wholeLife()
	c.wholeInputs()
	c.wholePlaceholders()
	if r := p.Readiness; r != nil {
		asks := r.Service != nil || r.Interval != nil || r.Timeout != nil
		c.exactlyOne(!asks && r.Settle != nil, []string{"readiness"}, map[string]bool{"command": r.Command != nil, "http": r.HTTP != nil, "tcp": r.TCP != nil})
	}
	if r := p.Route; r != nil && r.Strategy != nil && *r.Strategy == StrategyExplicit && p.Extension == nil && len(r.Fallback) == 0 {
		c.fail([]string{"route", "strategy"}, "strategy explicit needs an extension or a fallback list to name the places")
	}
	if w := p.Workspace; w != nil && w.Access != nil && *w.Access == "none" && w.Mode != nil && *w.Mode == "mirror" {
		c.fail([]string{"workspace"}, "mode mirror brings the workspace back, and access none gives it none: choose remote-canonical or another access")
	}
	return c.errs.Err()
}

// exactlyOne refuses two alternatives, and none unless that is allowed.
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
			c.fail(at, "a stage's tag is required: the next stage and the sandbox name it")
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
	for name, d := range map[string]*Duration{"default": t.Default, "idle_reap": t.IdleReap} {
		if d != nil && *d > *t.Max {
			c.fail([]string{"ttl", name}, "ttl.%s %s is above ttl.max %s", name, FormatDuration(duration(d)), FormatDuration(duration(t.Max)))
		}
	}
}
