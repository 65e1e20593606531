package saasstub

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// Provision implements extensions.Backend: create names, labels and bills the
// object; the contents follow; start makes it usable. A call that was cut short
// anywhere is finished by the next one.
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
	now, err := b.now(ctx, obj)
	if err != nil {
		return fail(h, err)
	}
	o := b.observe(obj, now)
	if o.Phase == extensions.PhaseReady && spec.Readiness != nil {
		o.Phase, o.Reachability = extensions.PhaseProvisioning, extensions.Reachability{} // until the probe succeeds
	}
	return h, o, nil
}

func (b *backend) now(ctx context.Context, obj vendor.Object) (time.Time, error) {
	_, now, err := b.client.Get(ctx, obj.Ref)
	return now, err
}

// claim creates the object, or adopts the one of the same id and generation.
func (b *backend) claim(ctx context.Context, spec extensions.Spec) (vendor.Object, error) {
	req := vendor.Request{
		Name: string(spec.ID), Title: spec.Name, Labels: maps.Clone(spec.Labels), Region: cmp.Or(spec.Region, text(spec.Options, fieldRegion), b.region),
		Template: text(spec.Options, fieldTemplate), Deadline: spec.Deadline,
		ReadOnly: spec.Workspace.Access == extensions.AccessRO, NoAccess: spec.Workspace.Access == extensions.AccessNone,
	}
	if spec.Resources.CPU != nil {
		req.MilliCPU = int64(*spec.Resources.CPU)
	}
	if spec.Resources.MemoryMB != nil {
		req.MemoryMB = *spec.Resources.MemoryMB
	}
	if req.Labels == nil {
		req.Labels = map[string]string{}
	}
	req.Labels[extensions.LabelID] = string(spec.ID)
	req.Labels[extensions.LabelGeneration] = strconv.FormatInt(spec.Generation, 10)
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
		return vendor.Object{}, extensions.Errorf(extensions.KindConflict, "another owner's object has this name at the vendor")
	case generation(found[0]) != spec.Generation:
		return vendor.Object{}, extensions.Errorf(extensions.KindConflict, "generation %d of this sandbox exists, wanted is %d",
			generation(found[0]), spec.Generation).WithRemedy("tear the other generation down first")
	}
	return *found[0], nil
}

// fill gives a created object its contents; doing it again changes nothing.
func (b *backend) fill(ctx context.Context, spec extensions.Spec, ref string) error {
	if s := spec.FromSnapshot; s != nil {
		if err := b.client.Restore(ctx, ref, s.Handle.Ref); err != nil {
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

// refuse names what the vendor does not rent; nothing has been asked yet.
func (b *backend) refuse(spec extensions.Spec) error {
	c := b.desc.Capabilities
	unsupported := func(format string, args ...any) *extensions.Error {
		return extensions.Errorf(extensions.KindUnsupported, format, args...)
	}
	if _, err := extensions.ParseID(string(spec.ID)); err != nil {
		return err
	}
	strongest := c.IsolationLevels[len(c.IsolationLevels)-1]
	switch r := spec.Resources; {
	case spec.Isolation != "" && !strongest.Meets(spec.Isolation):
		return unsupported("isolation %q is above what the vendor offers (%v)", spec.Isolation, c.IsolationLevels)
	case spec.Compose != nil || spec.Containers != nil:
		return unsupported("the vendor runs single sandboxes, no compose stacks or containers beside each other")
	case spec.FromSandbox != "":
		return unsupported("the vendor cannot fork a live sandbox")
	case r.GPU != nil && r.GPU.Count > 0:
		return unsupported("the vendor has no GPUs")
	case r.CPU != nil && int64(*r.CPU) > vendor.MaxMilliCPU, r.MemoryMB != nil && *r.MemoryMB > vendor.MaxMemoryMB:
		return unsupported("the vendor's largest sandbox has %d vCPU and %d MiB", *c.MaxVCPU, *c.MaxMemoryMB)
	case spec.Readiness != nil && len(spec.Readiness.Command) == 0:
		return unsupported("readiness by http or tcp: nothing can listen at this vendor").WithRemedy("use readiness.command")
	case spec.Region != "" && text(spec.Options, fieldRegion) != "" && text(spec.Options, fieldRegion) != spec.Region:
		return unsupported("options.region is %q, and it has to be in %q", text(spec.Options, fieldRegion), spec.Region).
			WithRemedy("leave options.region out, or choose the same")
	case spec.Deadline.IsZero():
		return extensions.Errorf(extensions.KindInvalid, "the sandbox has no deadline")
	case spec.FromSnapshot != nil && spec.FromSnapshot.Handle.Extension != b.extension:
		return extensions.Errorf(extensions.KindInvalid, "the snapshot is kept by %s, not here", spec.FromSnapshot.Handle.Extension)
	}
	if err := spec.CheckSecrets(); err != nil {
		return err
	}
	return extensions.CheckFields("options", b.desc.Options, spec.Options)
}
