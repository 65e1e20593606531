package compose

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// build judges a build: its folder and its Dockerfile together, the rest field by field.
func build(p *policer, where string, v reflect.Value) {
	b := v.Interface().(*types.BuildConfig)
	p.buildFiles(where, b)
	p.walk(where, v)
}

func (p *policer) buildFiles(where string, b *types.BuildConfig) {
	if remote(b.Context) || strings.HasPrefix(b.Context, types.ServicePrefix) {
		p.found.refuse("build-remote", where+".context", quoted(b.Context))
		return
	}
	context, e, err := p.inBundle(b.Context)
	switch {
	case errors.Is(err, errMissing), err == nil && (e == nil || e.Type != TypeDir):
		p.found.refuse("file-missing", where+".context", quoted(shown(b.Context))+" is not a folder of the bundle")
		return
	case err != nil:
		p.found.refuse("build-outside", where+".context", fmt.Sprintf("%s: %v", quoted(shown(b.Context)), err))
		return
	}
	if b.DockerfileInline != "" {
		if len(b.DockerfileInline) > MaxFile {
			p.found.refuse("too-large", where+".dockerfile_inline", errTooLarge.Error())
		}
		return
	}
	at, dockerfile := where+".dockerfile", b.Dockerfile
	if dockerfile == "" {
		dockerfile = "Dockerfile"
	}
	if remote(dockerfile) {
		p.found.refuse("build-remote", at, quoted(dockerfile))
		return
	}
	if _, ok := strings.CutPrefix(path.Clean(dockerfile), Root+"/"); ok {
		p.named(dockerfile, "build-outside", at, true)
		return
	}
	p.file(context, dockerfile, "build-outside", at)
}

// buildContexts distinguishes contexts that lie elsewhere from those that are only not supported.
func buildContexts(p *policer, where string, v reflect.Value) {
	all := v.Interface().(types.Mapping)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		at, from := join(where, name), all[name]
		_, _, err := p.inBundle(from)
		switch {
		case remote(from):
			p.found.refuse("build-remote", at, quoted(from))
		case !strings.HasPrefix(from, types.ServicePrefix) && (errors.Is(err, errLeaves) || errors.Is(err, errForm)):
			p.found.refuse("build-outside", at, fmt.Sprintf("%s: %v", quoted(shown(from)), err))
		default:
			p.found.refuse("build-context", at, quoted(shown(from)))
		}
	}
}
