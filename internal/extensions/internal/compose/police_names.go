package compose

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// reservedName reports whether a name is one of those that are added to a stack
// when it is rendered. Names on a network know no case.
func reservedName(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return strings.HasPrefix(name, "sandboxer-") || strings.HasPrefix(name, "sandboxer.")
}

func (p *policer) name(where, name string) {
	if reservedName(name) {
		p.found.refuse("reserved-name", where, "it is named "+quoted(name))
	}
}

// own judges a name of one's own choice, and then as the other check does.
func own(then check) check {
	return func(p *policer, where string, v reflect.Value) {
		p.name(where, v.String())
		then(p, where, v)
	}
}

// ownAll judges a list of such names.
func ownAll(p *policer, where string, v reflect.Value) {
	for i := range v.Len() {
		p.name(fmt.Sprintf("%s[%d]", where, i), v.Index(i).String())
	}
}

// keyed judges the keys of a mapping, and what is below it.
func keyed(p *policer, where string, v reflect.Value) {
	for _, k := range v.MapKeys() {
		p.name(join(where, k.String()), k.String())
	}
	p.walk(where, v)
}

// reservedImage reports whether a reference, however it is spelled, leads to the
// names of images that are made on hosts: what bears them is taken for ours, and
// whoever owns the name at a registry could put something else there.
func reservedImage(ref string) bool {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(ref)), "@")
	parts := slices.DeleteFunc(strings.Split(name, "/"), func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return false
	}
	host, _, _ := strings.Cut(parts[0], ":")
	switch {
	case host == "sandboxer.invalid":
		return true
	case host == "docker.io", strings.HasSuffix(host, ".docker.io"), host == "registry.hub.docker.com":
		parts = parts[1:]
	}
	if len(parts) > 0 && parts[0] == "library" {
		parts = parts[1:]
	}
	return len(parts) > 1 && parts[0] == "sandboxer"
}

var (
	imageID  = regexp.MustCompile(`^(sha256:.*|[0-9a-f]{64})$`)
	likeAnID = regexp.MustCompile(`^[0-9a-f]+$`)
)

// byName is a reference that the engine reads as a name only. It takes one of
// hexadecimal digits alone for the beginning of an id where no image has that
// name, and would run whatever image of the host is so called, another sandbox's
// build too.
func byName(ref string) string {
	if likeAnID.MatchString(ref) {
		return ref + ":latest"
	}
	return ref
}

// imageName refuses what is no reference, ids of images, and the names of our
// own images.
func imageName(p *policer, where string, v reflect.Value) {
	matching("image-name", imagePattern)(p, where, v)
	if imageID.MatchString(v.String()) {
		never("image-name")(p, where, v)
	}
	if reservedImage(v.String()) {
		p.found.refuse("reserved-image", where, "it is set to "+quoted(v.String()))
	}
}

// judgeContainers holds the images and containers of a profile to the rules on names that
// a stack is held to.
func judgeContainers(all map[string]extensions.Container) error {
	f := newFindings(nil)
	p := &policer{loading: &loading{found: f}}
	for _, name := range sortedKeys(all) {
		c := all[name]
		p.name(name, name)
		p.name(name+".hostname", c.Hostname)
		images := map[string]string{name + ".image.pull": c.Image.Pull}
		if pull := c.Image.Pull; pull != "" && (!imagePattern.MatchString(pull) || imageID.MatchString(pull)) {
			f.refuse("image-name", name+".image.pull", "it is set to "+quoted(pull))
		}
		for i, stage := range c.Image.Stages {
			images[fmt.Sprintf("%s.image.stages[%d].parent_tag", name, i)] = stage.ParentTag
		}
		if c.Image.Build != nil {
			images[name+".image.build.parent_tag"] = c.Image.Build.ParentTag
		}
		for _, where := range sortedKeys(images) {
			if reservedImage(images[where]) {
				f.refuse("reserved-image", where, "it is set to "+quoted(images[where]))
			}
		}
	}
	return f.err()
}
