package openshell

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

const (
	policySchema = 1
	// hard ends a sandbox whose files cannot be protected as demanded; the vendor's default goes on without.
	hard = "hard_requirement"
	// enforce blocks; the vendor's default only logs.
	enforce = "enforce"
	// ruleName is the one network rule of a profile.
	ruleName = "sandboxer"
)

var (
	// scratch is what every program may write.
	scratch = []string{"/dev/null", "/tmp"}
	// baseline is what the vendor's supervisor lets be read besides, once there is a network rule: its page on the default
	// policy, read on 2026-11-24. It may save that as a version of its own.
	baseline = []string{"/app", "/dev/urandom", "/etc", "/lib", "/proc", "/usr", "/var/log"}
)

// policyOf is what a profile says, in the vendor's words.
func policyOf(spec extensions.Spec) *gateway.SandboxPolicy {
	l := layoutOf(spec)
	files := &gateway.FilesystemPolicy{ReadOnly: l.readOnly, ReadWrite: append([]string{l.home}, scratch...)}
	switch {
	case l.workDir == "" || within(l.workDir, l.home):
	case spec.Workspace.Access == extensions.AccessRO:
		files.ReadOnly = append(slices.Clone(files.ReadOnly), l.workDir)
	default:
		files.ReadWrite = append(files.ReadWrite, l.workDir)
	}
	p := &gateway.SandboxPolicy{Version: policySchema, Filesystem: files, Landlock: &gateway.LandlockPolicy{Compatibility: hard},
		Process: &gateway.ProcessPolicy{RunAsUser: l.user, RunAsGroup: l.user}}
	if len(spec.Network.Egress) == 0 {
		return p // nothing is allowed
	}
	rule := &gateway.NetworkPolicyRule{Name: ruleName}
	for _, r := range spec.Network.Egress {
		e := &gateway.NetworkEndpoint{Ports: []uint32{uint32(r.Port)}, Enforcement: enforce}
		if r.CIDR != "" {
			e.AllowedIps = []string{r.CIDR}
		} else {
			e.Host = hostOf(r.Domain)
		}
		rule.Endpoints = append(rule.Endpoints, e)
	}
	for _, at := range extensions.Strings(spec.Options[fieldBinaries], everyBinary...) {
		rule.Binaries = append(rule.Binaries, &gateway.NetworkBinary{Path: at})
	}
	p.NetworkPolicies = map[string]*gateway.NetworkPolicyRule{ruleName: rule}
	return p
}

// hostOf is a name of an allowlist as the vendor writes it, whose "*" is one label only.
func hostOf(domain string) string {
	if below, ok := strings.CutPrefix(domain, "*."); ok {
		return "**." + below
	}
	return domain
}

// enforced says why the policy want is not in force yet; "" = it is. KindUnsupported says that it will not be: then nothing
// is promised, and the sandbox must end. A load that failed keeps whatever was in force before.
func (b *backend) enforced(ctx context.Context, want *gateway.SandboxPolicy, s *gateway.Sandbox) (why string, err error) {
	m := s.GetMetadata()
	st, err := b.gateway.GetSandboxPolicyStatus(ctx, &gateway.GetSandboxPolicyStatusRequest{Name: m.GetName(), Workspace: m.GetWorkspace()})
	if extensions.IsKind(err, extensions.KindNotFound) {
		return "the sandbox has not asked for its policy", nil
	}
	if err != nil {
		return "", err
	}
	r := st.GetRevision()
	switch {
	case r.GetStatus() == gateway.PolicyStatus_POLICY_STATUS_FAILED:
		return "", unenforced("version %d of the policy was not loaded: %s", r.GetVersion(), b.line.Words(r.GetLoadError()))
	case r.GetStatus() != gateway.PolicyStatus_POLICY_STATUS_LOADED || st.GetActiveVersion() != r.GetVersion() || r.GetVersion() == 0:
		return fmt.Sprintf("version %d of the policy is not loaded", r.GetVersion()), nil
	}
	now, err := b.gateway.GetSandboxConfig(ctx, &gateway.GetSandboxConfigRequest{SandboxId: m.GetId()})
	switch {
	case err != nil:
		return "", err
	case now.GetPolicySource() == gateway.PolicySource_POLICY_SOURCE_GLOBAL:
		return "", unenforced("the gateway has a policy for all sandboxes, which replaces the profile's")
	case now.GetVersion() != r.GetVersion():
		return fmt.Sprintf("version %d of the policy is not loaded", now.GetVersion()), nil
	}
	if other := differs(want, now.GetPolicy()); other != "" {
		return "", unenforced("the active policy is not the profile's: %s", other)
	}
	return "", nil
}

func unenforced(format string, args ...any) error {
	return extensions.Errorf(extensions.KindUnsupported, format, args...).At("isolation").
		WithRemedy("check the gateway's log and settings; the kernel of its machines needs Landlock, and the image needs each path of the policy")
}

// differs names what got allows and want does not, or keeps no more; "" = nothing.
func differs(want, got *gateway.SandboxPolicy) string {
	files, have := want.GetFilesystem(), got.GetFilesystem()
	beyond := func(list []string, allowed ...[]string) string {
		for _, at := range list {
			if !slices.Contains(slices.Concat(allowed...), at) {
				return extensions.Clean(at, 200)
			}
		}
		return ""
	}
	if have.GetIncludeWorkdir() {
		return "it makes the image's own folder writable"
	}
	if at := beyond(have.GetReadWrite(), files.GetReadWrite()); at != "" {
		return "it makes " + at + " writable"
	}
	if at := beyond(have.GetReadOnly(), files.GetReadOnly(), files.GetReadWrite(), baseline); at != "" {
		return "it makes " + at + " readable"
	}
	if got.GetLandlock().GetCompatibility() != hard {
		return "its files are protected only where the kernel can"
	}
	if p, q := want.GetProcess(), got.GetProcess(); p.GetRunAsUser() != q.GetRunAsUser() || p.GetRunAsGroup() != q.GetRunAsGroup() {
		return fmt.Sprintf("it runs as %q", extensions.Clean(q.GetRunAsUser(), 40))
	}
	asked := ways(want)
	for _, way := range ways(got) {
		if !slices.Contains(asked, way) {
			return "it allows " + extensions.Clean(way, 200)
		}
	}
	if len(ways(got)) < len(asked) {
		return "it lacks a network rule"
	}
	return ""
}

// ways are the ways out under a policy: each program, to each destination.
func ways(p *gateway.SandboxPolicy) (all []string) {
	for _, r := range p.GetNetworkPolicies() {
		for _, e := range r.GetEndpoints() {
			ports := e.GetPorts()
			if len(ports) == 0 {
				ports = []uint32{e.GetPort()}
			}
			for _, port := range ports {
				for _, x := range r.GetBinaries() {
					all = append(all, fmt.Sprintf("%s to %q in %q:%d (%s)", x.GetPath(), e.GetHost(), e.GetAllowedIps(), port, e.GetEnforcement()))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
