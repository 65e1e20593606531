package compose

import (
	"path"
	"slices"
	"strconv"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// NetworkMode is what walls a sandbox's networks are given.
type NetworkMode string

const (
	// NetworkDeny: internal networks without an address of the host. Nothing
	// but the stack's own services answers, and nothing is published.
	NetworkDeny NetworkMode = "deny"
	// NetworkGuarded: the host's firewall guards bridges of fixed names, so
	// that the host can reach in. Nothing is published.
	NetworkGuarded NetworkMode = "guarded"
	// NetworkProxy: as deny, with a proxy that joins the networks. Where
	// Bridges are given the firewall guards them too and the host can reach in.
	NetworkProxy NetworkMode = "proxy"
	// NetworkAllow: Docker's ordinary networks; ports are published.
	NetworkAllow NetworkMode = "allow"
)

// Placeholders of the rendered model, filled by Compose's own interpolation
// from the environment of the script that runs it. Each '$' that is not one of
// these is escaped.
const (
	VarWorkspace = "SBX_WORKSPACE" // absolute path of the workspace on the host
	VarBundle    = "SBX_BUNDLE"    // absolute path of the bundle on the host
	VarNet       = "SBX_NET_"      // + index in Rendered.Networks: subnet, CIDR
	VarSecret    = "SBX_SECRET_"   // + index in sorted SecretNames: the value
	VarSecrets   = "SBX_SECRETS"   // absolute path of the folder with a file for each secret
)

// RenderOptions bind a project to one sandbox on one host.
type RenderOptions struct {
	ID     extensions.ID     // the Compose project's name
	Labels map[string]string // written on every container, network and volume
	// Service is where exec goes by default; see Project.Default.
	Service string
	// Mount is the workspace's absolute path inside; "" mounts none.
	Mount string
	// ReadOnly makes every bind of the workspace read-only.
	ReadOnly bool
	// Bundled says the stack's files came from the profile's bundle: relative
	// paths are then below VarBundle, else below VarWorkspace.
	Bundled bool
	// Env and SecretNames reach the default service, or every service where
	// there is none; others get a name by listing it without a value.
	Env         map[string]string
	SecretNames []string
	// SecretFiles says that secrets come as files below VarSecrets, each bound to
	// its name below extensions.SecretsDir, and as no variable.
	SecretFiles bool
	// ProxyEnv is set in every service that does not set the name itself.
	ProxyEnv map[string]string

	Resources extensions.Resources
	// GPU says the host can give and the profile may have accelerators.
	GPU bool

	Network NetworkMode
	// Egress lets NetworkGuarded networks reach out as far as the host's
	// firewall allows it; without it they are internal.
	Egress bool
	// Bridges are the bridges' names by index of Project.NetworkNames, at most
	// 15 bytes each; required by NetworkGuarded.
	Bridges []string
	// BuildNetwork lets image builds reach the network although the sandbox
	// may not.
	BuildNetwork bool
}

// Rendered is a stack ready to be sent.
type Rendered struct {
	// Model is what `docker compose -f` reads: JSON, the same bytes for the
	// same input. Compose must be run with --project-directory set to a folder
	// of ours without a .env file.
	Model    []byte
	Networks []string // keys, in the order of VarNet
	Volumes  []string // keys of named volumes, sorted
	Services []ServiceInfo
	Builds   []Build // in the order they must be built
	Pulls    []Pull  // images that are not built, without duplicates
	// SecretVars maps the variables that carry secrets to the secrets' names;
	// empty where they come as files.
	SecretVars map[string]string
	// Default is the service exec goes to, "" where there is none.
	Default string
	// Mkdir are folders the stack binds and the source lacks, relative to the
	// source's place on the host (VarWorkspace, or VarBundle where Bundled).
	// They must exist before the stack is started.
	Mkdir []string
}

// ServiceInfo is what readiness, exec and forwarding need to know of a service.
type ServiceInfo struct {
	Name  string `json:"name"`
	Scale int    `json:"scale"` // containers, ≥ 0
	// OneShot: another service waits for its successful end, so exit 0 is
	// success. LongRunning: it has a health check, a port, a restart policy or
	// execs, so any exit is a failure. Neither: exit 0 counts as done until all
	// else is ready, and later where it is a Job: restart is no or on-failure.
	OneShot     bool     `json:"one_shot,omitempty"`
	LongRunning bool     `json:"long_running,omitempty"`
	Job         bool     `json:"job,omitempty"`
	Health      bool     `json:"health,omitempty"` // has a health check of its own; the image may bring one too
	Ports       []Port   `json:"ports,omitempty"`
	DependsOn   []string `json:"depends_on,omitempty"`
	// WorkDir is where the workspace's root is mounted inside; "" = nowhere.
	WorkDir string `json:"work_dir,omitempty"`
	User    string `json:"user,omitempty"`  // "" = the image's
	Image   string `json:"image,omitempty"` // as run: a build's tag or a reference
}

// Port is a container port that a service publishes or exposes.
type Port struct {
	Target    int    `json:"target"`              // 1-65535
	Protocol  string `json:"protocol"`            // tcp | udp | sctp
	Published bool   `json:"published,omitempty"` // reachable at an address of the host
	HostIP    string `json:"host_ip,omitempty"`   // of published ports
	HostPort  string `json:"host_port,omitempty"` // "" = chosen by the engine
}

// Pull is an image reference to be present before the stack is started.
type Pull struct {
	Image    string
	Platform string // os/arch[/variant]; "" = the host's
	// Always asks the registry for a newer one although the image is present:
	// the service says pull_policy: always. Never: it must be present.
	Always, Never bool
}

// Build is one image build.
type Build struct {
	Service string // the first service that runs it, or the stage's
	Tag     string // BuildRepository:<digest>
	Digest  string // lower-case hex SHA-256 of all that decides the image
	Context string // folder, relative to the source's root
	// Dockerfile is relative to the source's root. Text, where not empty, is
	// the Dockerfile's content in its place.
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
	// Bases are the images it begins with, those of earlier builds apart.
	Bases []Base
	// What each step may use: bytes, thousandths of a CPU (0 = no limit), and
	// processes with threads. The builder gives none of it to the file itself.
	MemoryBytes, MilliCPU, Pids int64

	cacheKey string // of a stage: changing it builds anew
}

// Render makes the final model. What it cannot enforce is KindUnsupported,
// unless the resources are best effort; a stack that cannot be bound to the
// options is KindInvalid.
func (p *Project) Render(o RenderOptions) (Rendered, error) {
	r, err := newRenderer(p, o)
	if err != nil {
		return Rendered{}, err
	}
	for _, step := range []func() error{r.builds, r.services, r.files, r.pin, r.networks, r.volumes, r.encode} {
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
	binds   map[string]bool   // what of the source is bound, by relative path
	found   *findings         // what Dockerfiles are refused for
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
		return extensions.Errorf(extensions.KindInternal, "rendering asked for the unknown network mode %q", r.o.Network)
	}
	if r.o.ID == "" {
		return extensions.Errorf(extensions.KindInternal, "rendering was given no sandbox id")
	}
	if m := r.o.Mount; m != "" && (!path.IsAbs(m) || path.Clean(m) != m || m == "/") {
		return extensions.Errorf(extensions.KindInvalid, "the workspace cannot be mounted at %q", m).
			WithRemedy("give an absolute path other than /, without . and ..")
	}
	if len(r.p.Compose.Services) == 0 {
		return extensions.Errorf(extensions.KindInvalid, "the stack has no service that is on").
			At("compose").WithRemedy("add a service, or name its profile in compose.profiles")
	}
	if len(r.p.Compose.Jobs) > 0 || len(r.p.Compose.Models) > 0 {
		return extensions.Errorf(extensions.KindInvalid, "the stack declares jobs or models, which only some versions of Compose run").At("compose")
	}
	return r.checkText()
}

// token stands for ${name} until everything else has been escaped. checkText
// keeps it from being forged.
func token(name string) string { return "\x00" + name + "\x00" }
