package compose

import (
	"path"
	"slices"
	"strconv"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// NetworkMode selects the walls of a sandbox's networks.
type NetworkMode string

const (
	// NetworkDeny gives internal networks without an address of the host. Only the stack's own services
	// answer, and nothing is published.
	NetworkDeny NetworkMode = "deny"
	// NetworkGuarded has the host's firewall guard bridges of fixed names, so that the host can reach in.
	// Nothing is published.
	NetworkGuarded NetworkMode = "guarded"
	// NetworkProxy is as deny, with a proxy that joins the networks. If Bridges are set, the firewall guards
	// them too and the host can reach in.
	NetworkProxy NetworkMode = "proxy"
	// NetworkAllow gives Docker's ordinary networks; ports are published.
	NetworkAllow NetworkMode = "allow"
)

// Placeholders of the rendered model. Compose's own interpolation fills them from the environment of the
// script that runs it. Every other '$' is escaped.
const (
	VarWorkspace = "SBX_WORKSPACE" // absolute path of the workspace on the host
	VarBundle    = "SBX_BUNDLE"    // absolute path of the bundle on the host
	VarNet       = "SBX_NET_"      // + index in Rendered.Networks: subnet in CIDR
	VarSecret    = "SBX_SECRET_"   // + index in sorted SecretNames: the value
	VarSecrets   = "SBX_SECRETS"   // absolute path of the folder with one file per secret
)

// RenderOptions bind a project to one sandbox on one host.
type RenderOptions struct {
	ID     extensions.ID     // the Compose project's name
	Labels map[string]string // written on every container, network and volume
	// Service is exec's default; see Project.Default.
	Service string
	// Mount is the workspace's absolute path inside; "" mounts none.
	Mount string
	// ReadOnly makes every bind of the workspace read-only.
	ReadOnly bool
	// Bundled says that the stack's files come from the profile's bundle: relative paths are then below
	// VarBundle, else below VarWorkspace.
	Bundled bool
	// Env and SecretNames reach the default service, or every service if there is none. Other services get a
	// name by listing it without a value.
	Env         map[string]string
	SecretNames []string
	// SecretFiles delivers secrets as files below VarSecrets, each bound to its name below
	// extensions.SecretsDir, and not as variables.
	SecretFiles bool
	// ProxyEnv is set in every service that does not set the name itself.
	ProxyEnv map[string]string

	Resources extensions.Resources
	// GPU says that the host can give accelerators and the profile may have them.
	GPU bool

	Network NetworkMode
	// Egress lets NetworkGuarded networks reach out as far as the host's firewall allows; without it they are
	// internal.
	Egress bool
	// Bridges are the bridges' names by index in Project.NetworkNames, at most 15 bytes each. NetworkGuarded
	// requires them.
	Bridges []string
	// Repository is the name of what is built, without a tag; "" = ociimage.Repository.
	Repository string
	// Binding is whose options messages name; "" = ext.compose-ssh.
	Binding string
	// BuildNetwork lets image builds reach the network although the sandbox may not.
	BuildNetwork bool
}

// Rendered is a stack ready to send.
type Rendered struct {
	// Model is what `docker compose -f` reads: JSON, the same bytes for the same input. Run Compose with
	// --project-directory set to a folder of ours without a .env file.
	Model []byte
	// Project is the same before its text was escaped, for an engine's own API.
	Project  *types.Project
	Networks []string // keys, in the order of VarNet
	Volumes  []string // keys of named volumes, sorted
	Services []ServiceInfo
	Builds   []Build // in build order
	Pulls    []Pull  // images that are not built, without duplicates
	// SecretVars maps the variables that carry secrets to the secrets' names; empty if secrets are delivered
	// as files.
	SecretVars map[string]string
	// Default is exec's default service, "" if there is none.
	Default string
	// Mkdir are folders that the stack binds and the source lacks, relative to the source's place on the host
	// (VarWorkspace, or VarBundle if Bundled). They must exist before the stack starts.
	Mkdir []string
	// Binds are the paths that the stack binds below that place, sorted.
	Binds []string

	source func(bundled bool) *Bundle // see WriteContext
}

// ServiceInfo is what readiness, exec and forwarding need to know about a service.
type ServiceInfo struct {
	Name  string `json:"name"`
	Scale int    `json:"scale"` // containers, ≥ 0
	// OneShot: another service waits for it to succeed, so exit 0 is success. LongRunning: it has a health
	// check, a port, a restart policy or execs, so any exit is a failure. Neither: exit 0 counts as done
	// until everything else is ready, and later too if it is a Job, whose restart is no or on-failure.
	OneShot     bool     `json:"one_shot,omitempty"`
	LongRunning bool     `json:"long_running,omitempty"`
	Job         bool     `json:"job,omitempty"`
	Health      bool     `json:"health,omitempty"` // has its own health check; the image may bring one too
	Ports       []Port   `json:"ports,omitempty"`
	DependsOn   []string `json:"depends_on,omitempty"`
	// WorkDir is where the workspace's root is mounted inside; "" = not mounted.
	WorkDir string `json:"work_dir,omitempty"`
	User    string `json:"user,omitempty"`  // "" = the image's
	Image   string `json:"image,omitempty"` // as it runs: a build's tag or a reference
}

// Port is a container port that a service publishes or exposes.
type Port struct {
	Target    int    `json:"target"`              // 1-65535
	Protocol  string `json:"protocol"`            // tcp | udp | sctp
	Published bool   `json:"published,omitempty"` // reachable at an address of the host
	HostIP    string `json:"host_ip,omitempty"`   // of published ports
	HostPort  string `json:"host_port,omitempty"` // "" = chosen by the engine
}

// Pull is an image reference that must be present before the stack starts.
type Pull struct {
	Image    string
	Platform string // os/arch[/variant]; "" = the host's
	// Always asks the registry for a newer image even if one is present: the service says pull_policy:
	// always. Never requires the image to be present.
	Always, Never bool
}

// Build is one image build.
type Build struct {
	Service string // the first service that runs it, or the stage's
	Tag     string // RenderOptions.Repository and Digest
	Digest  string // lower-case hex SHA-256 of everything that determines the image
	Bundled bool   `json:"-"` // its files are in the profile's bundle, not in the workspace
	Context string // folder, relative to the source's root
	// Dockerfile is relative to the source's root. Text, unless empty, replaces the Dockerfile's content.
	Dockerfile string
	Text       string
	Target     string
	Args       map[string]string
	Network    string // "none", or "" for the engine's default
	Platform   string
	ExtraHosts []string // host:ip
	ShmBytes   int64
	// Parent is the digest of the stage this one builds on, "" = none.
	Parent string
	// Bases are the images it starts from, except those of earlier builds.
	Bases []Base
	// Instructions are those of the Dockerfile, in order.
	Instructions []Instruction `json:"-"`
	// Limits of each step: bytes, thousandths of a CPU (0 = no limit), and processes with threads. The
	// builder passes none of them to the file itself.
	MemoryBytes, MilliCPU, Pids int64

	cacheKey string // of a stage: changing it rebuilds
	onto     string // of a stage: its parent_tag as written
}

// Render builds the final model. What it cannot enforce is KindUnsupported unless the resources are best
// effort; a stack that cannot be bound to the options is KindInvalid.
func (p *Project) Render(o RenderOptions) (Rendered, error) {
	r, err := newRenderer(p, o)
	if err != nil {
		return Rendered{}, err
	}
	for _, step := range []func() error{r.builds, r.services, r.files, r.bound, r.pin, r.networks, r.volumes, r.encode} {
		if err := step(); err != nil {
			return Rendered{}, err
		}
	}
	return r.out, nil
}

// renderer holds what the steps of one Render share.
type renderer struct {
	p       *Project
	o       RenderOptions
	root    string            // the source's root, as the loader saw it
	base    string            // token of the source's place on the host
	secrets map[string]string // secret name -> variable
	targets map[string]bool   // services that get Env, secrets and the workspace
	built   map[string]string // service -> tag
	binds   map[string]bool   // what the stack binds from the source, by relative path
	found   *findings         // refusals of Dockerfiles
	model   types.Project
	out     Rendered
}

func newRenderer(p *Project, o RenderOptions) (*renderer, error) {
	def, err := p.Default(o.Service)
	if err != nil {
		return nil, err
	}
	r := &renderer{
		p: p, o: o, root: p.root(), base: token(VarWorkspace), secrets: map[string]string{},
		targets: map[string]bool{}, built: map[string]string{}, binds: map[string]bool{},
	}
	if o.Bundled {
		r.base = token(VarBundle)
	}
	r.out.Default = def
	for name := range p.Compose.Services {
		r.targets[name] = def == "" || def == name
	}
	names := slices.Sorted(slices.Values(o.SecretNames))
	for i, name := range slices.Compact(names) {
		r.secrets[name] = VarSecret + strconv.Itoa(i)
	}
	r.out.source = p.source
	r.out.SecretVars = map[string]string{}
	if !o.SecretFiles {
		for name, variable := range r.secrets {
			r.out.SecretVars[variable] = name
		}
	}
	r.model = types.Project{Name: string(o.ID), Services: types.Services{}}
	return r, r.check()
}

// check refuses options and parts of the stack that no step could render.
func (r *renderer) check() error {
	switch r.o.Network {
	case NetworkDeny, NetworkGuarded, NetworkProxy, NetworkAllow:
	default:
		return extensions.Errorf(extensions.KindInternal, "the network mode %q is unknown", r.o.Network)
	}
	if r.o.ID == "" {
		return extensions.Errorf(extensions.KindInternal, "the sandbox ID is missing")
	}
	if m := r.o.Mount; m != "" && (!path.IsAbs(m) || path.Clean(m) != m || m == "/") {
		return extensions.Errorf(extensions.KindInvalid, "the workspace cannot be mounted at %q", m).
			WithRemedy("give an absolute path other than /, without . and ..")
	}
	if len(r.p.Compose.Services) == 0 {
		return extensions.Errorf(extensions.KindInvalid, "the stack has no enabled service").
			At("compose").WithRemedy("add a service, or list its profile in compose.profiles")
	}
	if len(r.p.Compose.Jobs) > 0 || len(r.p.Compose.Models) > 0 {
		return extensions.Errorf(extensions.KindInvalid,
			"the stack declares jobs or models, which only some versions of Compose run").At("compose")
	}
	return r.checkText()
}

// token stands for ${name} until everything else has been escaped. checkText keeps it from being forged.
func token(name string) string { return "\x00" + name + "\x00" }
