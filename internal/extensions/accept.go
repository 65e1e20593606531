package extensions

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// CheckIdentity refuses, with KindInvalid, a spec without a valid ID or with a
// deadline that is not after now. A plan's spec has neither.
func (s Spec) CheckIdentity(now time.Time) error {
	if _, err := ParseID(string(s.ID)); err != nil {
		return err
	}
	if !s.Deadline.After(now) {
		return Errorf(KindInvalid, "the deadline %s has passed", s.Deadline.UTC().Format(time.RFC3339)).At("ttl")
	}
	return nil
}

// InTime refuses, with KindUnavailable, a create whose deadline has passed while it waited: a place that is asked for no time
// takes its own default, or refuses what is right.
func (s Spec) InTime(now time.Time) error {
	if now.Before(s.Deadline) {
		return nil
	}
	return Errorf(KindUnavailable, "the deadline of the create passed while it waited").
		WithRemedy("create it again; of many at once, create fewer (terraform apply -parallelism)")
}

// AcceptNow is Accept for a create: it also refuses a deadline that the place does not
// allow.
func (d Descriptor) AcceptNow(spec Spec, now time.Time) error {
	if err := spec.CheckIdentity(now); err != nil {
		return err
	}
	if limit := d.Capabilities.MaxTTL; limit > 0 && spec.Deadline.Sub(now) > limit {
		return Errorf(KindUnsupported, "the place ends a sandbox after %s", limit).At("ttl").
			WithRemedy("shorten ttl, choose another place, or name your larger plan in the binding's config")
	}
	return d.Accept(spec)
}

// Accept refuses a spec that no place with this declaration can carry out, before
// anything is made. Errors are KindUnsupported, or KindInvalid if no place at all can.
// An adapter calls it first, then makes its own checks.
func (d Descriptor) Accept(spec Spec) error {
	c := d.Capabilities
	if i := c.IsolationLevels; spec.Isolation != "" && !i[len(i)-1].Meets(spec.Isolation) {
		return Errorf(KindUnsupported, "isolation level %q is stronger than what the place has (%s)", spec.Isolation, i[len(i)-1]).
			At("isolation").WithRemedy("lower isolation.level, or choose another extension")
	}
	if spec.Direct && !slices.Contains(c.IsolationLevels, IsolationNone) {
		return Errorf(KindUnsupported, "the place runs nothing without isolation").At("isolation").WithRemedy("use a place on this machine")
	}
	for _, limit := range spec.Resources.Limits() {
		if !spec.Resources.BestEffort && !slices.Contains(c.Limits, limit) {
			return Errorf(KindUnsupported, "the place cannot enforce a limit on %s", limit).At("resources."+string(limit)).
				WithRemedy("drop resources.%s, or set resources.best_effort", limit)
		}
	}
	switch {
	case spec.Workspace.Access == AccessRO && !c.ReadOnlyWorkspace:
		return Errorf(KindUnsupported, "nothing at the place holds a workspace read-only: a user inside can become root").At("workspace.access").
			WithRemedy("set workspace.access: rw or none, or choose another extension")
	case !slices.Contains(c.SecretsAs, spec.Delivery()):
		return Errorf(KindUnsupported, "the place cannot deliver secrets as %s", spec.Delivery()).At("secrets_as").
			WithRemedy("set secrets_as to one of %v, or choose another extension", c.SecretsAs)
	case spec.FromSandbox != "" && !d.Has(PowerFork):
		return Errorf(KindUnsupported, "the place cannot fork a sandbox").At("from_sandbox").
			WithRemedy("take a snapshot and restore it, if the place has them")
	case spec.Resources.GPU != nil && spec.Resources.GPU.Count > 0 && !c.GPU:
		return Errorf(KindUnsupported, "the place has no GPUs").At("resources.gpu").WithRemedy("drop resources.gpu, or choose another extension")
	case spec.Resources.GPU != nil && spec.Resources.GPU.Model != "" && c.GPUModels != nil &&
		!slices.Contains(c.GPUModels, spec.Resources.GPU.Model):
		return Errorf(KindUnsupported, "the place has no GPU %q", Clean(spec.Resources.GPU.Model, 40)).At("resources.gpu.model").
			WithRemedy("name one of %v", c.GPUModels)
	case spec.Region != "" && !slices.Contains(c.Regions, "*") && !slices.Contains(c.Regions, spec.Region):
		return Errorf(KindUnsupported, "the place is not known to run sandboxes in the region %q", Clean(spec.Region, 40)).At("region").
			WithRemedy("name a region that it has, or say in the binding's config where it runs them")
	}
	for kind, asked := range map[string]bool{"compose": spec.Compose != nil, "containers": spec.Containers != nil,
		"image": spec.Image != nil} {
		if asked && !slices.Contains(c.Provides.RequirementKinds, kind) {
			return Errorf(KindUnsupported, "the place runs no %s", kind).At(kind).WithRemedy("choose a place that does")
		}
	}
	if err := d.AcceptSnapshot(spec.FromSnapshot); err != nil {
		return err
	}
	if err := errors.Join(c.CheckEgress(spec.Network), c.CheckEntrypoint(spec.Entrypoint), c.CheckIdleReap(spec.IdleReap)); err != nil {
		return err
	}
	if err := spec.checkEnv(); err != nil {
		return err
	}
	if err := spec.CheckSecrets(); err != nil {
		return err
	}
	return CheckFields("options", d.Options, spec.Options)
}

// AcceptSnapshot is Accept for the snapshot that a spec starts from; nil = none. Of one without a handle a plan knows only the
// ID; its place finds it before it is asked for the sandbox.
func (d Descriptor) AcceptSnapshot(ref *SnapshotRef) error {
	if ref == nil {
		return nil
	}
	switch {
	case !d.Has(PowerSnapshot):
		return Errorf(KindUnsupported, "the place restores no snapshots").At("from_snapshot").WithRemedy("start from a workspace or an image")
	case ref.Handle.Extension == "": // not found yet
		return nil
	case ref.Handle.Extension != d.Handler:
		return Errorf(KindInvalid, "the snapshot is kept by %s, not here", ref.Handle.Extension).At("from_snapshot")
	case ref.Source == nil:
		return nil
	case !slices.Contains(d.Snapshots.Portable, ref.Source.Kind()):
		return Errorf(KindUnsupported, "a snapshot of kind %q cannot be restored at another place than its own", ref.Source.Kind()).
			At("from_snapshot").WithRemedy("create the sandbox where the snapshot is kept, or use one of the kinds %v", d.Snapshots.Portable)
	}
	if _, ok := HexOfDigest(ref.Source.Digest()); !ok {
		return Errorf(KindInvalid, "the snapshot %s has no digest, so its bytes cannot be proved at another place", ref.ID).
			At("from_snapshot").WithRemedy("create the sandbox where the snapshot is kept")
	}
	return nil
}

func (s Spec) checkEnv() error {
	for _, m := range []map[string]string{s.Toolchain.Env, s.Env} {
		for k, v := range m {
			if !ValidEnvName(k) || strings.ContainsRune(v, 0) {
				return Errorf(KindInvalid, "the environment variable %q has an invalid name or a NUL byte", k)
			}
		}
	}
	return nil
}

// CheckPlace refuses a host of a kind that d does not run at, with KindUnsupported; nil
// stands for an account, or for this machine.
func (d Descriptor) CheckPlace(h *Host) error {
	if p, ok := d.PlaceOf(h); !ok {
		return Errorf(KindUnsupported, "%s does not run there: its place is %s", d.Handler, p)
	}
	return nil
}
