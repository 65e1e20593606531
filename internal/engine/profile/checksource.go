package profile

import (
	"maps"
	"slices"
	"strconv"
)

func (c *checker) source() {
	c.text(c.p.FromSnapshot, CheckCheckpoint, "from_snapshot")
	if c.p.Image != nil {
		c.image(c.p.Image, "image")
	}
	if k := c.p.Compose; k != nil {
		c.each(k.File, checkInside("the compose file"), "compose", "file")
		c.each(k.EnvFiles, checkInside("the env file"), "compose", "env_files")
		c.each(k.Profiles, CheckName, "compose", "profiles")
		c.text(k.Service, CheckName, "compose", "service")
		c.pairs(k.Variables, checkEnv, "compose", "variables")
		c.text(k.Bundle, checkInside("the bundle"), "compose", "bundle")
	}
	if k := c.p.Containers; k != nil {
		if k.Agent != nil {
			c.container(*k.Agent, "containers", "agent")
		}
		for _, name := range slices.Sorted(maps.Keys(k.Services)) {
			c.is(CheckName(name), "containers", "services", name)
			c.container(k.Services[name], "containers", "services", name)
		}
	}
}

func (c *checker) container(k Container, path ...string) {
	at := func(steps ...string) []string { return append(slices.Clone(path), steps...) }
	if k.Image != nil {
		c.image(k.Image, at("image")...)
	}
	if k.Command != nil {
		c.is(checkArgv(k.Command), at("command")...)
	}
	c.text(k.Hostname, func(s string) error {
		if badDomain(s) != "" {
			return invalid("%s is not a host name", quoted(s))
		}
		return nil
	}, at("hostname")...)
	c.pairs(k.Environment, checkEnv, at("environment")...)
}

func (c *checker) image(i *Image, path ...string) {
	at := func(steps ...string) []string { return append(slices.Clone(path), steps...) }
	c.text(i.Pull, checkImage, at("pull")...)
	c.text(i.Bundle, checkInside("the bundle"), at("bundle")...)
	if i.Build != nil {
		c.stage(*i.Build, at("build")...)
	}
	if len(i.Stages) > maxList {
		c.fail(at("stages"), "%d stages; at most %d are accepted", len(i.Stages), maxList)
		return
	}
	for n, s := range i.Stages {
		c.stage(s, at("stages", strconv.Itoa(n))...)
	}
}

func (c *checker) stage(s Stage, path ...string) {
	at := func(steps ...string) []string { return append(slices.Clone(path), steps...) }
	c.text(s.Context, line("the build context"), at("context")...)
	c.text(s.Dockerfile, checkInside("the dockerfile"), at("dockerfile")...)
	c.text(s.Target, CheckName, at("target")...)
	c.text(s.Tag, checkImage, at("tag")...)
	c.text(s.ParentTag, checkImage, at("parent_tag")...)
	c.text(s.CacheKey, kind("a cache key"), at("cache_key")...)
	c.pairs(s.Args, checkEnv, at("args")...)
}

func checkImage(s string) error {
	if len(s) > 512 || !word(s, "._:@/-") {
		return invalid("%s is not an image reference, as in python:3.12", quoted(s))
	}
	return nil
}
