package compose

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// mounts moves a service's binds to the source's place on the host, and adds the workspace where it belongs
// and is not mounted yet.
func (r *renderer) mounts(name string, s *types.ServiceConfig, info *ServiceInfo) error {
	own := s.Volumes
	s.Volumes = nil
	for _, m := range own {
		m.Extensions, m.Consistency = nil, ""
		if m.Type == types.VolumeTypeBind {
			rel, inside, err := r.source(m.Source, true)
			if err != nil {
				return err
			}
			bind := types.ServiceVolumeBind{CreateHostPath: true}
			if m.Bind != nil {
				bind = *m.Bind
				bind.Extensions = nil
			}
			if inside {
				m.Source, bind.CreateHostPath = r.place(rel), false
				if !r.o.Bundled {
					m.ReadOnly = m.ReadOnly || r.o.ReadOnly
					if rel == "." && info.WorkDir == "" {
						info.WorkDir = m.Target
					}
				}
			}
			m.Bind = &bind
		}
		s.Volumes = append(s.Volumes, m)
	}
	if r.o.Mount == "" || !r.targets[name] || info.WorkDir != "" || mountedAt(*s, r.o.Mount) {
		return nil
	}
	info.WorkDir = r.o.Mount
	s.Volumes = append(s.Volumes, types.ServiceVolumeConfig{
		Type: types.VolumeTypeBind, Source: token(VarWorkspace), Target: r.o.Mount, ReadOnly: r.o.ReadOnly,
		Bind: &types.ServiceVolumeBind{},
	})
	return nil
}

// mountedAt reports whether something is mounted at exactly that place inside.
func mountedAt(s types.ServiceConfig, target string) bool {
	return slices.ContainsFunc(targets(s), func(t string) bool { return t == target })
}

// targets returns the places inside where something is mounted.
func targets(s types.ServiceConfig) []string {
	var out []string
	for _, m := range s.Volumes {
		out = append(out, path.Clean(m.Target))
	}
	for _, t := range s.Tmpfs {
		place, _, _ := strings.Cut(t, ":")
		out = append(out, path.Clean(place))
	}
	return out
}

// source returns a path of the model relative to the source's root, with symbolic links on the way followed,
// and notes it as bound. If it is not inside, it is a path of the host that a grant allowed. If mayMake is
// set, a missing path becomes a folder.
func (r *renderer) source(name string, mayMake bool) (rel string, inside bool, err error) {
	rel, inside = below(r.root, name)
	if !inside {
		if path.IsAbs(name) {
			return name, false, nil
		}
		return "", false, extensions.Errorf(extensions.KindInvalid, "%q is outside the stack's own files", name).At("compose")
	}
	if r.p.Bundle != nil && rel != "." {
		real, e, err := r.p.Bundle.resolve(rel)
		switch {
		case e != nil:
			rel = real
		case !errors.Is(err, errMissing) || real == "" || r.p.Bundle.isLink(rel):
			return "", false, extensions.Errorf(extensions.KindInvalid, "%q does not exist in the stack's own files", rel).
				At("compose").WithRemedy("use the path of the file or folder itself, without symbolic links")
		case !mayMake:
			return "", false, extensions.Errorf(extensions.KindInvalid, "%q is not among the stack's own files", rel).At("compose")
		default:
			rel = real
			if !slices.Contains(r.out.Mkdir, rel) {
				r.out.Mkdir = append(r.out.Mkdir, rel)
				slices.Sort(r.out.Mkdir)
			}
		}
	}
	r.binds[rel] = true
	return rel, true, nil
}

// isLink reports whether name, or anything on the way to it, is a symbolic link.
func (b *Bundle) isLink(name string) bool {
	for at := name; at != "." && at != "/"; at = path.Dir(at) {
		if e := b.entries[at]; e != nil && e.Type == TypeSymlink {
			return true
		}
	}
	return false
}

// place returns where a path of the source lies on the host.
func (r *renderer) place(rel string) string {
	if rel == "." {
		return r.base
	}
	return r.base + "/" + rel
}

// bound tells what is bound below the source's place.
func (r *renderer) bound() error {
	for _, rel := range sortedKeys(r.binds) {
		if rel != "." {
			r.out.Binds = append(r.out.Binds, rel)
		}
	}
	return nil
}

// pin keeps containers from moving each other's binds. The engine resolves the source of a bind when a
// container starts, as root of the host: a container that can write a folder could put a symbolic link to /
// in the place of what the next container binds below it. A mount point cannot be renamed or removed, so each
// writable bind gets every name that leads to such a place mounted over itself. The first container to start
// sees the source as it was sent; by then its pins hold.
func (r *renderer) pin() error {
	for name, s := range r.model.Services {
		var pins []types.ServiceVolumeConfig
		for _, holder := range s.Volumes {
			at, ours := r.placeOf(holder)
			if !ours || holder.ReadOnly {
				continue
			}
			for _, rel := range r.leading(at) {
				p := holder
				p.Source = r.place(rel)
				p.Target = path.Join(holder.Target, strings.TrimPrefix(rel, strings.TrimSuffix(at, ".")))
				if !covered(s, pins, holder.Target, p.Target) {
					pins = append(pins, p)
				}
			}
		}
		s.Volumes = append(s.Volumes, pins...)
		r.model.Services[name] = s
	}
	return nil
}

// placeOf returns the path in the source that a mount binds.
func (r *renderer) placeOf(m types.ServiceVolumeConfig) (string, bool) {
	if m.Type != types.VolumeTypeBind {
		return "", false
	}
	if m.Source == r.base {
		return ".", true
	}
	return strings.CutPrefix(m.Source, r.base+"/")
}

// leading returns the names below folder at that lead to something bound, sorted: a, a/b and a/b/c if a/b/c
// is bound.
func (r *renderer) leading(at string) []string {
	found := map[string]bool{}
	for bound := range r.binds {
		for rel := bound; rel != "." && rel != at; rel = path.Dir(rel) {
			if at == "." || strings.HasPrefix(rel, at+"/") {
				found[rel] = true
			}
		}
	}
	return sortedKeys(found)
}

// covered reports whether a mount between a holder and a place below it already keeps that place, or hides
// it.
func covered(s types.ServiceConfig, pins []types.ServiceVolumeConfig, holder, place string) bool {
	holder = path.Clean(holder)
	for _, t := range targets(s) {
		if t != holder && strings.HasPrefix(t, strings.TrimSuffix(holder, "/")+"/") && (t == place || strings.HasPrefix(place, t+"/")) {
			return true
		}
	}
	return slices.ContainsFunc(pins, func(p types.ServiceVolumeConfig) bool { return p.Target == place })
}
