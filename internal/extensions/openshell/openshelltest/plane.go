package openshelltest

import (
	"cmp"
	"context"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// plane is the gateway's service.
type plane struct {
	gateway.UnimplementedOpenShellServer
	g *Gateway
}

const (
	workspace   = "default"
	longestName = 19 // crates/openshell-server/src/grpc/mod.rs of the vendor's repository
	policyAfter = 1  // how often a policy was asked for before it is loaded
)

var (
	label      = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	labelKey   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$`)
	user       = regexp.MustCompile(`^(sandbox|[1-9][0-9]*)$`)
	hostGlob   = regexp.MustCompile(`^(\*\*?\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$`)
)

func refuse(code codes.Code, format string, args ...any) error {
	return status.Errorf(code, format, args...)
}

// CreateSandbox implements gateway.OpenShellServer.
func (p plane) CreateSandbox(_ context.Context, in *gateway.CreateSandboxRequest) (*gateway.SandboxResponse, error) {
	if in.GetWorkspace() != workspace {
		return nil, refuse(codes.NotFound, "workspace %q not found", in.GetWorkspace())
	}
	if err := checkCreate(in); err != nil {
		return nil, err
	}
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	for _, s := range p.g.sandboxes {
		if s.name == in.GetName() && s.space == in.GetWorkspace() {
			return nil, refuse(codes.AlreadyExists, "sandbox %q already exists", in.GetName())
		}
	}
	s, err := p.g.newSandbox(proto.CloneOf(in))
	if err != nil {
		return nil, refuse(codes.Internal, "%v", err)
	}
	return &gateway.SandboxResponse{Sandbox: s.told()}, nil
}

// checkCreate refuses what the gateway does, and what no adapter may leave open.
func checkCreate(in *gateway.CreateSandboxRequest) error {
	bad := func(format string, args ...any) error { return refuse(codes.InvalidArgument, format, args...) }
	spec := in.GetSpec()
	switch name := in.GetName(); {
	case len(name) > longestName || !label.MatchString(name) || strings.Contains(name, "--"):
		return bad("name %q", name)
	case len(spec.GetEnvironment())+len(spec.GetTemplate().GetEnvironment())+len(spec.GetProviders()) > 0:
		return bad("an environment or providers")
	case len(spec.GetCommand()) == 0 || spec.GetCommand()[0] == "":
		return bad("no command")
	case spec.GetResourceRequirements().GetGpu() != nil:
		return refuse(codes.FailedPrecondition, "no GPU is available")
	}
	for k, v := range in.GetLabels() {
		if !labelKey.MatchString(k) || !labelValue.MatchString(v) || len(v) > 63 {
			return bad("label %q=%q", k, v)
		}
	}
	for k, v := range in.GetAnnotations() {
		if !labelKey.MatchString(k) || len(v) > 8192 {
			return bad("annotation %q", k)
		}
	}
	return checkPolicy(spec.GetPolicy(), bad)
}

func checkPolicy(p *gateway.SandboxPolicy, bad func(string, ...any) error) error {
	switch {
	case p.GetVersion() != 1:
		return bad("policy of version %d", p.GetVersion())
	case p.GetLandlock().GetCompatibility() != "hard_requirement":
		return bad("landlock %q", p.GetLandlock().GetCompatibility())
	case !user.MatchString(p.GetProcess().GetRunAsUser()) || !user.MatchString(p.GetProcess().GetRunAsGroup()):
		return bad("user %q", p.GetProcess().GetRunAsUser())
	}
	for _, at := range slices.Concat(p.GetFilesystem().GetReadOnly(), p.GetFilesystem().GetReadWrite()) {
		if !strings.HasPrefix(at, "/") || at == "/" || strings.Contains(at, "..") {
			return bad("path %q", at)
		}
	}
	for name, r := range p.GetNetworkPolicies() {
		if len(r.GetEndpoints()) == 0 || len(r.GetBinaries()) == 0 {
			return bad("rule %q without endpoints or binaries", name)
		}
		for _, e := range r.GetEndpoints() {
			if err := checkEndpoint(e, bad); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkEndpoint(e *gateway.NetworkEndpoint, bad func(string, ...any) error) error {
	switch {
	case e.GetEnforcement() != "enforce":
		return bad("enforcement %q", e.GetEnforcement())
	case len(e.GetPorts()) == 0 || slices.Contains(e.GetPorts(), 0):
		return bad("ports %v", e.GetPorts())
	case e.GetHost() == "" && len(e.GetAllowedIps()) == 0, e.GetHost() != "" && !hostGlob.MatchString(e.GetHost()):
		return bad("host %q", e.GetHost())
	}
	for _, ip := range e.GetAllowedIps() {
		n, err := netip.ParsePrefix(ip)
		if err != nil || n.Contains(netip.MustParseAddr("127.0.0.1")) || n.Contains(netip.MustParseAddr("169.254.0.1")) {
			return bad("allowed_ips %q", ip)
		}
	}
	return nil
}

// named finds a sandbox by its name.
func (p plane) named(in interface {
	GetName() string
	GetWorkspace() string
}) (*sandbox, error) {
	for _, s := range p.g.all() {
		if s.name == in.GetName() && s.space == in.GetWorkspace() {
			return s, nil
		}
	}
	return nil, refuse(codes.NotFound, "sandbox not found")
}

// GetSandbox implements gateway.OpenShellServer.
func (p plane) GetSandbox(_ context.Context, in *gateway.GetSandboxRequest) (*gateway.SandboxResponse, error) {
	s, err := p.named(in)
	if err != nil {
		return nil, err
	}
	told, err := s.shown()
	if err != nil {
		return nil, err
	}
	return &gateway.SandboxResponse{Sandbox: told}, nil
}

// StopSandbox implements gateway.OpenShellServer.
func (p plane) StopSandbox(_ context.Context, in *gateway.StopSandboxRequest) (*gateway.SandboxResponse, error) {
	return p.moved(in, (*sandbox).stop)
}

// StartSandbox implements gateway.OpenShellServer.
func (p plane) StartSandbox(_ context.Context, in *gateway.StartSandboxRequest) (*gateway.SandboxResponse, error) {
	return p.moved(in, (*sandbox).restart)
}

func (p plane) moved(in interface {
	GetName() string
	GetWorkspace() string
}, how func(*sandbox) error) (*gateway.SandboxResponse, error) {
	s, err := p.named(in)
	if err == nil {
		err = how(s)
	}
	if err != nil {
		return nil, err
	}
	return &gateway.SandboxResponse{Sandbox: s.told()}, nil
}

// DeleteSandbox implements gateway.OpenShellServer.
func (p plane) DeleteSandbox(_ context.Context, in *gateway.DeleteSandboxRequest) (*gateway.DeleteSandboxResponse, error) {
	s, err := p.named(in)
	if err != nil {
		return nil, err
	}
	if err := s.remove(); err != nil {
		p.g.t.Errorf("the end of %s: %v", in.GetName(), err)
	}
	return &gateway.DeleteSandboxResponse{Deleted: true}, nil
}

// ListSandboxes implements gateway.OpenShellServer.
func (p plane) ListSandboxes(_ context.Context, in *gateway.ListSandboxesRequest) (*gateway.ListSandboxesResponse, error) {
	key, value, ok := strings.Cut(in.GetLabelSelector(), "=")
	if !ok || in.GetLimit() == 0 || in.GetAllWorkspaces() {
		return nil, refuse(codes.InvalidArgument, "selector %q, limit %d", in.GetLabelSelector(), in.GetLimit())
	}
	var found []*gateway.Sandbox
	for _, s := range p.g.all() {
		if t := s.told(); t.GetMetadata().GetLabels()[key] == value && t.GetMetadata().GetWorkspace() == in.GetWorkspace() {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *gateway.Sandbox) int { return cmp.Compare(a.GetMetadata().GetId(), b.GetMetadata().GetId()) })
	p.g.mu.Lock()
	size, from := min(p.g.pageSize, int(in.GetLimit())), min(int(in.GetOffset()), len(found))
	if p.g.stuck {
		from = 0
	}
	p.g.mu.Unlock()
	return &gateway.ListSandboxesResponse{Sandboxes: found[from:min(from+size, len(found))]}, nil
}

// GetSandboxPolicyStatus implements gateway.OpenShellServer.
func (p plane) GetSandboxPolicyStatus(_ context.Context,
	in *gateway.GetSandboxPolicyStatusRequest) (*gateway.GetSandboxPolicyStatusResponse, error) {
	s, err := p.named(in)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	switch {
	case s.asked < policyAfter:
		return nil, refuse(codes.NotFound, "no policy revision found for this sandbox")
	case s.asked == policyAfter:
		return &gateway.GetSandboxPolicyStatusResponse{Revision: &gateway.SandboxPolicyRevision{Version: s.load.Version,
			Status: gateway.PolicyStatus_POLICY_STATUS_PENDING}}, nil
	}
	return &gateway.GetSandboxPolicyStatusResponse{ActiveVersion: s.load.Active, Revision: &gateway.SandboxPolicyRevision{
		Version: s.load.Version, Status: s.load.Status, LoadError: s.load.Error, Policy: s.load.Policy}}, nil
}

// GetSandboxConfig implements gateway.OpenShellServer.
func (p plane) GetSandboxConfig(_ context.Context, in *gateway.GetSandboxConfigRequest) (*gateway.GetSandboxConfigResponse, error) {
	s, err := p.g.the(in.GetSandboxId())
	if err != nil {
		return nil, refuse(codes.NotFound, "sandbox not found")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	source := gateway.PolicySource_POLICY_SOURCE_SANDBOX
	if s.load.Global {
		source = gateway.PolicySource_POLICY_SOURCE_GLOBAL
	}
	return &gateway.GetSandboxConfigResponse{Policy: s.load.Policy, Version: s.load.Active, PolicySource: source, Workspace: workspace}, nil
}
