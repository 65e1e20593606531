package openshell

import (
	"cmp"
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	maxGPUs  = 1024 // more than a machine has
	maxPaths = 200  // of a policy's files; the gateway takes 256, and its supervisor adds some
)

// userName is what the gateway lets a policy name: its own user, or a number that is not root's.
var userName = regexp.MustCompile(`^(sandbox|[1-9][0-9]{0,9})$`)

// CheckSpec implements extensions.SpecChecker.
func (x extension) CheckSpec(_ context.Context, cfg extensions.Config, spec extensions.Spec) ([]string, error) {
	s, err := parseConfig(cfg)
	if err == nil {
		b := &backend{settings: s}
		if b.desc, err = extensions.Declared(x, cfg.Values); err == nil {
			err = b.refuseContent(spec)
		}
	}
	return nil, failed("check", spec.ID, err)
}

// refuse names what cannot be made here, before anything is asked.
func (b *backend) refuse(spec extensions.Spec) error {
	if _, err := extensions.ParseID(string(spec.ID)); err != nil {
		return err
	}
	if spec.Account != b.account {
		return extensions.Errorf(extensions.KindInvalid, "the sandbox is of another account")
	}
	if time.Until(spec.Deadline) <= 0 {
		return extensions.Errorf(extensions.KindInvalid, "the deadline has passed").At("ttl")
	}
	return b.refuseContent(spec)
}

func unsupported(field, format string, args ...any) *extensions.Error {
	return extensions.Errorf(extensions.KindUnsupported, format, args...).At(field)
}

// refuseContent is the part of refuse about what was asked for.
func (b *backend) refuseContent(spec extensions.Spec) error {
	c := b.desc.Capabilities
	switch {
	case spec.Isolation != "" && !extensions.IsolationPolicy.Meets(spec.Isolation):
		return unsupported("isolation", "isolation %q is above what %s promises (%v)", spec.Isolation, vendor, c.IsolationLevels)
	case spec.FromSnapshot != nil || spec.FromSandbox != "":
		return unsupported("from_snapshot", "a sandbox of %s cannot be made from another one", vendor)
	case spec.Compose != nil || spec.Containers != nil:
		return unsupported("image", "%s runs one image: no stacks of containers", vendor).WithRemedy("use image, or choose another place")
	case spec.Image != nil && spec.Image.Pull == "":
		return unsupported("image.build", "%s builds no images", vendor).
			WithRemedy("push the image to where the gateway pulls from and name it in image.pull, or choose another place")
	case spec.Network.Needs() == extensions.EgressNone:
		return unsupported("network.default", "a policy of %s cannot allow every destination", vendor).
			WithRemedy("set network.default: deny and name in network.egress what may be reached, or choose another place")
	case spec.Delivery() != extensions.SecretsEnv && len(spec.Secrets) > 0:
		return unsupported("secrets_as", "%s has no files that only memory keeps", vendor).
			WithRemedy("set secrets_as: env, or choose another place")
	case spec.Region != "" && spec.Region != cmp.Or(b.region, unstated):
		return unsupported("region", "the gateway is not known to be in the region %q", spec.Region).
			WithRemedy("set `region` in the binding's config if its machines are there")
	}
	return cmp.Or(b.refuseSize(spec.Resources), refuseLayout(spec), c.CheckEntrypoint(spec.Entrypoint), c.CheckEgress(spec.Network),
		c.CheckIdleReap(spec.IdleReap), spec.CheckSecrets())
}

func (b *backend) refuseSize(r extensions.Resources) error {
	for _, limit := range r.Limits() {
		if !r.BestEffort && !slices.Contains(b.desc.Capabilities.Limits, limit) {
			return unsupported("resources."+string(limit), "the gateway is not known to hold a sandbox to %s", limit).
				WithRemedy("drop it, set resources.best_effort, or for cpu and memory_mb say in the binding's config which `driver` the gateway has")
		}
	}
	g := r.GPU
	switch {
	case g == nil || g.Count == 0:
	case g.Model != "":
		return unsupported("resources.gpu.model", "%s gives GPUs by number, not by model", vendor).WithRemedy("drop the model, or choose another place")
	case g.Count > maxGPUs:
		return unsupported("resources.gpu.count", "no gateway has %d GPUs", g.Count)
	}
	return nil
}

// refuseLayout refuses files that the policy could not protect, or that could not be put there under it.
func refuseLayout(spec extensions.Spec) error {
	l := layoutOf(spec)
	writable := append([]string{l.home}, scratch...)
	bad := func(field, at, why string) error {
		return extensions.Errorf(extensions.KindInvalid, "options.%s: %q %s", field, extensions.Clean(at, 80), why).At("options." + field)
	}
	for field, paths := range map[string][]string{fieldHome: {l.home}, fieldWorkDir: {l.workDir}, fieldReadOnly: l.readOnly,
		fieldBinaries: extensions.Strings(spec.Options[fieldBinaries], everyBinary...)} {
		for _, at := range paths {
			if at != "" && (!path.IsAbs(at) || at == "/" || slices.Contains(strings.Split(at, "/"), "..")) {
				return bad(field, at, "is not an absolute path below /")
			}
		}
	}
	if len(l.readOnly) > maxPaths {
		return extensions.Errorf(extensions.KindInvalid, "options.%s has more than %d paths", fieldReadOnly, maxPaths).At("options." + fieldReadOnly)
	}
	if !userName.MatchString(l.user) {
		return bad(fieldUser, l.user, "is neither `sandbox` nor the number of a user that is not root")
	}
	for _, open := range writable {
		for _, at := range l.readOnly {
			if within(open, at) || within(at, open) {
				return bad(fieldReadOnly, at, "and "+open+", which may be written, contain each other")
			}
		}
		if spec.Workspace.Access == extensions.AccessRO && (within(l.workDir, open) || within(open, l.workDir)) {
			return bad(fieldWorkDir, l.workDir, "and "+open+", which may be written, contain each other, so it cannot be read-only")
		}
	}
	if w := spec.Workspace; w.Access == extensions.AccessRO && (w.Source != nil || w.Repo != "" || spec.Instructions != "") {
		return unsupported("workspace.access", "files cannot be put into a workspace that the policy protects from its start").
			WithRemedy("put them into the image and leave workspace.repo and instructions out, or set workspace.access: rw")
	}
	return nil
}
