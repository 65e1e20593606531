package saasstub

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// Provision implements extensions.Backend: create names, labels and bills the object; the contents follow;
// start makes it usable. The next call finishes one that was cut short anywhere.
func (b *backend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	fail := func(h extensions.Handle, err error) (extensions.Handle, extensions.Observation, error) {
		return h, extensions.Observation{}, failed("provision", spec.ID, err)
	}
	if err := b.refuse(spec); err != nil {
		return fail(extensions.Handle{}, err)
	}
	if err := ctx.Err(); err != nil {
		return fail(extensions.Handle{}, err)
	}
	if err := b.lacksSource(ctx, spec); err != nil {
		return fail(extensions.Handle{}, err)
	}
	obj, err := b.claim(ctx, spec)
	if err != nil {
		h := extensions.Handle{}
		if k := extensions.KindOf(failed("", "", err)); k == extensions.KindIndeterminate || k == extensions.KindTimeout || obj.Ref != "" {
			h = b.handle(spec.ID, obj.Ref) // it may exist
		}
		return fail(h, err)
	}
	h := b.handle(spec.ID, obj.Ref)
	if obj.State == vendor.StateCreated {
		if err := b.fill(ctx, spec, obj.Ref); err != nil {
			return fail(h, err)
		}
		if obj, err = b.client.Start(ctx, obj.Ref, environment(spec), secretFiles(spec)); err != nil {
			return fail(h, err)
		}
	}
	seen, now, err := b.client.Get(ctx, obj.Ref)
	if err != nil {
		return fail(h, err)
	}
	if seen[0] != nil { // its entrypoint may have ended since
		obj = *seen[0]
	}
	o := b.observe(obj, now)
	if o.Phase == extensions.PhaseReady && spec.Readiness != nil {
		o.Phase, o.Reachability = extensions.PhaseProvisioning, extensions.Reachability{} // until the probe succeeds
	}
	return h, o, nil
}

// claim creates the object, or adopts the one with the same id and generation.
func (b *backend) claim(ctx context.Context, spec extensions.Spec) (vendor.Object, error) {
	req := vendor.Request{
		Name: string(spec.ID), Title: spec.Name,
		Region:   cmp.Or(spec.Region, extensions.Text(spec.Options, fieldRegion), b.region),
		Deadline: spec.Deadline, Idle: time.Duration(spec.IdleReap),
		ReadOnly: spec.Workspace.Access == extensions.AccessRO, NoAccess: spec.Workspace.Access == extensions.AccessNone,
		Open: spec.Network.Needs() == extensions.EgressNone,
	}
	switch spec.Entrypoint.Mode {
	case extensions.EntrypointImage:
		req.Entry = vendor.ImageEntrypoint
	case extensions.EntrypointArgv:
		req.Entry = spec.Entrypoint.Argv
	}
	for _, r := range spec.Network.Egress {
		req.Allow = append(req.Allow, vendor.Destination{Network: r.CIDR, Name: r.Domain, Port: r.Port})
	}
	if spec.Resources.CPU != nil {
		req.MilliCPU = int64(*spec.Resources.CPU)
	}
	if spec.Resources.MemoryMB != nil {
		req.MemoryMB = *spec.Resources.MemoryMB
	}
	var err error
	if req.Labels, err = packed(spec); err != nil {
		return vendor.Object{}, err
	}
	obj, err := b.client.Create(ctx, req)
	if !hasCode(err, vendor.CodeNameTaken) {
		return obj, err
	}
	var f *vendor.Fault
	errors.As(err, &f)
	found, _, gerr := b.client.Get(ctx, f.Ref)
	switch {
	case gerr != nil:
		return vendor.Object{Ref: f.Ref}, gerr
	case found[0] == nil || found[0].Labels[extensions.LabelID] != string(spec.ID):
		return vendor.Object{}, extensions.Errorf(extensions.KindConflict, "an object of another owner has this name at the vendor")
	case generation(found[0]) != spec.Generation:
		return vendor.Object{}, extensions.Errorf(extensions.KindConflict, "generation %d of this sandbox exists, want %d",
			generation(found[0]), spec.Generation).WithRemedy("tear the other generation down first")
	}
	return *found[0], nil
}

// fill gives a created object its contents; repeating it changes nothing.
func (b *backend) fill(ctx context.Context, spec extensions.Spec, ref string) error {
	if s := spec.FromSnapshot; s != nil {
		if err := b.restore(ctx, ref, *s); err != nil {
			return err
		}
	}
	if spec.FromSandbox != "" {
		from, err := b.source(ctx, spec.Source)
		if err == nil {
			err = b.client.Fork(ctx, ref, from)
		}
		if err != nil {
			return err
		}
	}
	if src := spec.Workspace.Source; src != nil && spec.Workspace.Access != extensions.AccessNone {
		r, err := src.Open(ctx)
		if err != nil {
			return err
		}
		err = b.client.Upload(ctx, ref, vendor.WorkDir, r)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	if spec.Instructions == "" {
		return nil
	}
	return b.client.Upload(ctx, ref, "", oneFile(extensions.InstructionsPath, spec.Instructions))
}

func (b *backend) restore(ctx context.Context, ref string, s extensions.SnapshotRef) error {
	if s.Source == nil {
		return b.client.Restore(ctx, ref, s.Handle.Ref)
	}
	r, err := tarstream.OpenSource(ctx, s.Source)
	if err != nil {
		return err
	}
	return errors.Join(b.client.RestoreStaged(ctx, ref, r), r.Close())
}

func oneFile(name, content string) io.Reader {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf) // writing to memory cannot fail
	_ = tw.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))})
	_, _ = tw.Write([]byte(content))
	_ = tw.Close()
	return &buf
}

func environment(spec extensions.Spec) map[string]string {
	env := map[string]string{}
	maps.Copy(env, spec.Toolchain.Env)
	maps.Copy(env, spec.Env)
	if spec.Delivery() == extensions.SecretsEnv {
		maps.Copy(env, revealed(spec.Secrets))
	}
	return env
}

func secretFiles(spec extensions.Spec) map[string]string {
	if spec.Delivery() != extensions.SecretsFile {
		return nil
	}
	return revealed(spec.Secrets)
}

func revealed(secrets map[string]extensions.Secret) map[string]string {
	plain := map[string]string{}
	for name, s := range secrets {
		plain[name] = s.Reveal()
	}
	return plain
}

// refuse names what the vendor does not rent, before asking it anything.
func (b *backend) refuse(spec extensions.Spec) error {
	c := b.desc.Capabilities
	unsupported := func(format string, args ...any) *extensions.Error {
		return extensions.Errorf(extensions.KindUnsupported, format, args...)
	}
	if _, err := extensions.ParseID(string(spec.ID)); err != nil {
		return err
	}
	if err := b.desc.Accept(spec); err != nil {
		return err
	}
	switch r := spec.Resources; {
	case spec.Compose != nil || spec.Containers != nil:
		return unsupported("the vendor runs single sandboxes, not compose stacks or several containers")
	case r.CPU != nil && int64(*r.CPU) > vendor.MaxMilliCPU, r.MemoryMB != nil && *r.MemoryMB > vendor.MaxMemoryMB:
		return unsupported("the vendor's largest sandbox has %d vCPU and %d MiB", *c.MaxVCPU, *c.MaxMemoryMB)
	case spec.Readiness != nil && len(spec.Readiness.Command) == 0:
		return unsupported("readiness by http or tcp: nothing can listen at this vendor").WithRemedy("use readiness.command")
	case spec.Region != "" && extensions.Text(spec.Options, fieldRegion) != "" && extensions.Text(spec.Options, fieldRegion) != spec.Region:
		return unsupported("options.region is %q, but the sandbox must be in %q", extensions.Text(spec.Options, fieldRegion), spec.Region).
			WithRemedy("remove options.region, or set the same region")
	case spec.Deadline.IsZero():
		return extensions.Errorf(extensions.KindInvalid, "the sandbox has no deadline")
	}
	return nil
}
