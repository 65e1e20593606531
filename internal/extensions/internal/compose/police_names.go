package compose

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// reservedName reports whether rendering adds the name to a stack. Names on a network are case-insensitive.
func reservedName(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return strings.HasPrefix(name, "sandboxer-") || strings.HasPrefix(name, "sandboxer.")
}

func (p *policer) name(where, name string) {
	if reservedName(name) {
		p.found.refuse("reserved-name", where, "it is named "+quoted(name))
	}
}

// own judges a name that the file chose, and then applies the other check.
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

// keyed judges the keys of a mapping and what is below it.
func keyed(p *policer, where string, v reflect.Value) {
	for _, k := range v.MapKeys() {
		p.name(join(where, k.String()), k.String())
	}
	p.walk(where, v)
}

// imageName refuses invalid references, image ids, and the names of our own images.
func imageName(p *policer, where string, v reflect.Value) {
	if !ociimage.Valid(v.String()) {
		never("image-name")(p, where, v)
	}
	if ociimage.Reserved(v.String()) {
		p.found.refuse("reserved-image", where, "it is set to "+quoted(v.String()))
	}
}

// judgeContainers applies a stack's rules on names to a profile's images and containers.
func judgeContainers(all map[string]extensions.Container) error {
	f := newFindings(nil)
	p := &policer{loading: &loading{found: f}}
	for _, name := range sortedKeys(all) {
		c := all[name]
		p.name(name, name)
		p.name(name+".hostname", c.Hostname)
		images := map[string]string{name + ".image.pull": c.Image.Pull}
		if pull := c.Image.Pull; pull != "" && !ociimage.Valid(pull) {
			f.refuse("image-name", name+".image.pull", "it is set to "+quoted(pull))
		}
		for i, stage := range c.Image.Stages {
			images[fmt.Sprintf("%s.image.stages[%d].parent_tag", name, i)] = stage.ParentTag
		}
		if c.Image.Build != nil {
			images[name+".image.build.parent_tag"] = c.Image.Build.ParentTag
		}
		for _, where := range sortedKeys(images) {
			if ociimage.Reserved(images[where]) {
				f.refuse("reserved-image", where, "it is set to "+quoted(images[where]))
			}
		}
	}
	return f.err()
}
