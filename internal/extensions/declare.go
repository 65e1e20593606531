package extensions

import "slices"

// Declarer is implemented by an Extension whose bindings may offer less than its
// descriptor, such as self-hosted vendor software, or a plan with lower limits. It is
// static like Describe.
type Declarer interface {
	// Declare returns the declaration of a binding with these config values. It is
	// pure: it depends only on the values, which were checked against
	// Descriptor.Config, and does not change them. It narrows and never widens. A
	// meaningless value is KindInvalid. Properties that only the place knows are Facts.
	Declare(values map[string]any) (Declaration, error)
}

// Declaration holds what a binding offers less than its descriptor; nil fields
// change nothing.
type Declaration struct {
	Narrowing Narrowing
	Powers    []Power // nil = all of the descriptor's
	Places    []Place
	Find      *Find
	List      *List
	Snapshots *Snapshots
	Pauses    *Pauses
}

// Declared returns the descriptor of one binding of x: Describe's, narrowed by
// Declare. Code that concerns a binding uses this one. A wider declaration is
// KindInternal: a bug of the adapter.
func Declared(x Extension, values map[string]any) (Descriptor, error) {
	d := x.Describe()
	n, ok := x.(Declarer)
	if !ok {
		return d, nil
	}
	has, err := n.Declare(values)
	if err != nil {
		return d, err
	}
	return d.Narrow(has)
}

// Narrow returns what d and x both declare. Anything wider in x is KindInternal.
func (d Descriptor) Narrow(x Declaration) (Descriptor, error) {
	wider := func(err error) (Descriptor, error) {
		return d, Errorf(KindInternal, "the extension %q declares more for a binding than it describes: %w", d.Handler, err)
	}
	out := d
	var err error
	if out.Capabilities, err = d.Capabilities.Narrow(x.Narrowing); err != nil {
		return wider(err)
	}
	if err := narrowSet("powers", &out.Powers, x.Powers); err != nil {
		return wider(err)
	}
	if err := narrowSet("places", &out.Places, x.Places); err != nil {
		return wider(err)
	}
	if x.Find != nil {
		if !x.Find.within(d.Find) {
			return wider(widens("find", *x.Find, d.Find))
		}
		out.Find = *x.Find
	}
	if x.List != nil {
		if x.List.Lag < d.List.Lag || !slices.Contains([]ListFreshness{d.List.Freshness, ListEventual}, x.List.Freshness) {
			return wider(widens("list", *x.List, d.List))
		}
		out.List = *x.List
	}
	if x.Snapshots != nil {
		if !x.Snapshots.within(d.Snapshots) {
			return wider(widens("snapshots", *x.Snapshots, d.Snapshots))
		}
		out.Snapshots = *x.Snapshots
	}
	if x.Pauses != nil {
		if !x.Pauses.EndsWhatRuns && d.Pauses.EndsWhatRuns {
			return wider(widens("pauses", *x.Pauses, d.Pauses))
		}
		out.Pauses = *x.Pauses
	}
	out.Capabilities, out.Powers = out.Capabilities.Agree(out.Powers)
	if !out.Has(PowerReadSnapshot) {
		out.Snapshots.Portable = nil
	}
	if !out.Has(PowerSnapshot) {
		out.Snapshots = Snapshots{}
	}
	if !out.Has(PowerFork) {
		out.Forks = Forks{}
	}
	if !out.Has(PowerPause) {
		out.Pauses = Pauses{}
	}
	return out, out.Validate()
}

// within reports whether f promises no more than have.
func (f Find) within(have Find) bool {
	levels := []FindStrength{FindNone, FindEventual, FindStrong}
	mine, most := slices.Index(levels, f.Strength), slices.Index(levels, have.Strength)
	return mine >= 0 && mine <= most && (mine < most || f.Settle >= have.Settle)
}

// within reports whether s promises no more than have.
func (s Snapshots) within(have Snapshots) bool {
	known := func(mine, all []SnapshotKind) bool {
		return !slices.ContainsFunc(mine, func(k SnapshotKind) bool { return !slices.Contains(all, k) })
	}
	kept := have.Expires == 0 || s.Expires > 0 && s.Expires <= have.Expires
	return kept && known(s.Kinds, have.Kinds) && known(s.Portable, have.Portable) && s.Find.within(have.Find) &&
		(s.StopsSource || !have.StopsSource) && (s.RunningOnly || !have.RunningOnly) && (s.HoldsSecrets || !have.HoldsSecrets)
}

// Agree returns c and powers, each without the parts that the other lacks.
func (c Capabilities) Agree(powers []Power) (Capabilities, []Power) {
	left := slices.Clone(powers)
	for _, x := range []struct {
		flag  *bool
		power Power
	}{{&c.PauseResume, PowerPause}, {&c.CapacityQuery, PowerCapacity}} {
		*x.flag = *x.flag && slices.Contains(left, x.power)
		if !*x.flag {
			left = slices.DeleteFunc(left, func(p Power) bool { return p == x.power })
		}
	}
	if c.ExtendTTL == ExtendNone || !slices.Contains(left, PowerExtend) {
		c.ExtendTTL, left = ExtendNone, slices.DeleteFunc(left, func(p Power) bool { return p == PowerExtend })
	}
	if !slices.Contains(left, PowerSnapshot) {
		c.FsSnapshot, left = false, slices.DeleteFunc(left, func(p Power) bool { return p == PowerReadSnapshot })
	}
	if !c.PauseResume {
		c.PausedExpiry = ""
	}
	return c, left
}
