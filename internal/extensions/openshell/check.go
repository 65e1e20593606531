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
	b, err := x.at(cfg)
	if err == nil {
		err = b.refuseContent(spec)
	}
	return nil, extensions.Failed("check", spec.ID, err, nil)
}

// refuse names what cannot be made here, before anything is asked.
func (b *backend) refuse(spec extensions.Spec) error {
	return cmp.Or(b.desc.AcceptNow(spec, time.Now()), b.refuseContent(spec))
}

func unsupported(field, format string, args ...any) *extensions.Error {
	return extensions.Errorf(extensions.KindUnsupported, format, args...).At(field)
}

// refuseContent is the part of refuse about what was asked for.
func (b *backend) refuseContent(spec extensions.Spec) error {
	gpu := spec.Resources.GPU
	switch {
	case spec.Network.Needs() == extensions.EgressNone:
		return unsupported("network.default", "a policy of %s cannot allow every destination", vendor).
			WithRemedy("set network.default: deny and list the allowed destinations in network.egress, or choose another place")
	case spec.Image != nil && spec.Image.Pull == "":
		return unsupported("image.build", "%s builds no images", vendor).
			WithRemedy("push the image to where the gateway pulls from and name it in image.pull, or choose another place")
	case gpu != nil && gpu.Count > 0 && gpu.Model != "":
		return unsupported("resources.gpu.model", "%s provides GPUs by number, not by model", vendor).
			WithRemedy("drop the model, or choose another place")
	case gpu != nil && gpu.Count > maxGPUs:
		return unsupported("resources.gpu.count", "no gateway has %d GPUs", gpu.Count)
	}
	return cmp.Or(b.desc.Accept(spec), refuseLayout(spec))
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
		return extensions.Errorf(extensions.KindInvalid, "options.%s has more than %d paths", fieldReadOnly, maxPaths).
			At("options." + fieldReadOnly)
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
		return unsupported("workspace.access", "files cannot be put into a workspace that the policy protects from the start").
			WithRemedy("put them into the image and leave workspace.repo and instructions out, or set workspace.access: rw")
	}
	return nil
}
