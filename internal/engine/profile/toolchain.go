package profile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxCommands limits, in bytes, the commands of one composed toolchain, which are stored with every
// sandbox.
const maxCommands = 256 << 10

// composed is the result of composing a profile's toolchain.
type composed struct {
	extensions.Toolchain
	provides []string
}

// toolchain composes a flattened profile's kits and its own commands. Required kits come first, otherwise
// the listed order holds; the profile's own commands come last. Each command runs once, and variables are
// joined in the same order.
func (s *Set) toolchain(flat *Profile) (composed, *kitError) {
	t := value(flat.Toolchain, Toolchain{})
	var out composed
	kits, err := s.compose(t.Kits, flat.Ref())
	if err != nil {
		return out, err
	}
	for _, k := range kits {
		out.Kits = append(out.Kits, k.Ref())
		out.provides = append(out.provides, k.Provides...)
		out.add(k.Install, k.PostAcquire, k.PreRelease)
	}
	out.add(t.Install, t.PostAcquire, t.PreRelease)
	env, err := composeEnv(kits, t.Env, flat.Ref())
	if err == nil {
		err = env.put(&out.Toolchain)
	}
	if err != nil {
		return out, err
	}
	if n := out.size(); n > maxCommands {
		return out, &kitError{msg: strictyaml.Message(invalid("the commands of the toolchain have %d bytes; at most %d are accepted", n,
			maxCommands)),
			remedy: "move long scripts into the workspace"}
	}
	return out, nil
}

func (c *composed) add(install, postAcquire, preRelease []Step) {
	c.Install = addSteps(c.Install, install)
	c.PostAcquire = addSteps(c.PostAcquire, postAcquire)
	c.PreRelease = addSteps(c.PreRelease, preRelease)
}

func (c *composed) size() (n int) {
	for _, s := range slices.Concat(c.Install, c.PostAcquire, c.PreRelease) {
		n += len(s.Run)
	}
	return n
}

// compose orders the kits named by refs and everything that they require. A named version applies to every
// reference without one; among refs, which heirs extend, the last named version wins. by says who wrote
// refs.
func (s *Set) compose(refs []string, by string) ([]*Kit, *kitError) {
	c := composer{set: s, pins: map[string]pin{}}
	roots := make([]string, len(refs))
	for i, ref := range refs {
		var version string
		if roots[i], version = kitRef(ref); version != "" {
			c.pins[roots[i]] = pin{version, by}
		}
	}
	for {
		known := len(c.pins)
		c.order, c.done, c.path = nil, map[*Kit]bool{}, nil
		for _, id := range roots {
			if err := c.visit(id, by); err != nil {
				return nil, err
			}
		}
		if len(c.pins) == known {
			return c.order, nil
		} // a version was named after others had been chosen: choose again
	}
}

type pin struct{ version, by string }

type composer struct {
	set   *Set
	pins  map[string]pin // by id
	order []*Kit
	done  map[*Kit]bool
	path  []*Kit
}

// visit adds what ref requires, and then ref.
func (c *composer) visit(ref, by string) *kitError {
	id, version := kitRef(ref)
	switch at, known := c.pins[id]; {
	case known && version != "" && at.version != version:
		return &kitError{msg: at.by + " wants " + pinned(id, at.version) + " and " + by + " wants " + pinned(id, version),
			remedy: "make them agree on one version"}
	case known:
		version = at.version
	case version != "":
		c.pins[id] = pin{version, by}
	}
	k, err := c.set.kits.lookup(pinned(id, version))
	if err != nil {
		return &kitError{msg: strictyaml.Message(err), missing: true}
	}
	if i := slices.Index(c.path, k); i >= 0 {
		cycle := append(slices.Clone(c.path[i:]), k)
		names := make([]string, len(cycle))
		for j, k := range cycle {
			names[j] = k.Ref()
		}
		return &kitError{msg: "requires forms a cycle: " + strings.Join(names, " -> "), cycle: cycle}
	}
	switch {
	case c.done[k]:
		return nil
	case len(c.path) == maxAncestors:
		return &kitError{msg: c.path[0].Ref() + " requires a chain of more than " + strconv.Itoa(maxAncestors) + " kits"}
	}
	c.path = append(c.path, k)
	for _, need := range k.Requires {
		if err := c.visit(need, k.Ref()); err != nil {
			return err
		}
	}
	c.path = c.path[:len(c.path)-1]
	c.order, c.done[k] = append(c.order, k), true
	return nil
}

// tools puts the toolchain into the spec. What its kits provide is not required of the place.
func (r *resolver) tools(set *Set, spec *extensions.Spec) {
	t, err := set.toolchain(r.p)
	if err != nil {
		r.fail(invalid("%s: toolchain: %s", r.p.Ref(), err.msg).WithRemedy("%s", err.remedy).At("profile"))
		return
	}
	spec.Toolchain = t.Toolchain
	spec.Requires.Capabilities = slices.DeleteFunc(spec.Requires.Capabilities,
		func(kind string) bool { return slices.Contains(t.provides, kind) })
}
