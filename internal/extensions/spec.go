package extensions

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Spec is a resolved profile with its inputs: complete and frozen. An adapter
// needs nothing else to provision; what it cannot honour it refuses.
type Spec struct {
	// The identity of this sandbox; not part of Hash.
	ID         ID                `json:"-"`
	Account    string            `json:"-"`
	Name       string            `json:"-"`
	Generation int64             `json:"-"` // 1 at create; recreate and adopt raise it
	Labels     map[string]string `json:"-"` // to be written on the backend object
	CreatedAt  time.Time         `json:"-"`
	Deadline   time.Time         `json:"-"` // when it must end; never zero
	Secrets    map[string]Secret `json:"-"` // by name; SecretsAs says how they come inside
	// Region is where an account's vendor has to make it; "" = its own choice.
	// Machines and hosts stand where they are.
	Region string `json:"-"`
	// ProbeLater: Provision does not ask the readiness probe, and lets nothing
	// settle. Commands of the toolchain come first; WaitReady does both then.
	ProbeLater bool `json:"-"`

	Profile      string            `json:"profile"`
	Version      string            `json:"version"`
	Isolation    Isolation         `json:"isolation"` // the floor
	Network      Network           `json:"network"`
	Workspace    Workspace         `json:"workspace"`
	Image        *Image            `json:"image,omitempty"`
	Compose      *Compose          `json:"compose,omitempty"`
	Containers   *Containers       `json:"containers,omitempty"`
	Scope        string            `json:"scope"` // session | agent | shared
	TTL          Duration          `json:"-"`     // changes in place
	MaxTTL       Duration          `json:"max_ttl,omitempty"`
	IdleReap     Duration          `json:"idle_reap,omitempty"`
	Resources    Resources         `json:"resources"`
	Instructions string            `json:"instructions,omitempty"` // a file inside; see InstructionsPath
	SecretNames  []string          `json:"secret_names,omitempty"` // sorted names of Secrets
	SecretsAs    SecretDelivery    `json:"secrets_as,omitempty"`   // "" = SecretsEnv; see Delivery
	Toolchain    Toolchain         `json:"toolchain"`
	Requires     Requires          `json:"requires"`
	Inputs       map[string]any    `json:"inputs,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	Readiness    *Probe            `json:"readiness,omitempty"`
	Settle       Duration          `json:"settle,omitempty"`  // see SettleDefault; 0 = at once
	Options      map[string]any    `json:"options,omitempty"` // the chosen binding's only
	FromSnapshot *SnapshotRef      `json:"from_snapshot,omitempty"`
	FromSandbox  ID                `json:"from_sandbox,omitempty"` // fork of a live one
}

// Hash is the lower-case hex SHA-256 of the resolved request. Identity,
// labels, deadline, generation, secret values and workspace bytes are not
// part of it: the same request has the same hash at any time, anywhere.
func (s Spec) Hash() string {
	b, err := json.Marshal(s)
	if err != nil { // inputs and options were decoded from YAML or JSON
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Labels every backend object carries. They cannot change later (but see
// GenerationSetter), so expiry is never decided by a label.
const (
	LabelID             = "sandboxer.id"
	LabelAccount        = "sandboxer.account"
	LabelGeneration     = "sandboxer.generation"
	LabelSpecHash       = "sandboxer.spec-hash"
	LabelInitialExpires = "sandboxer.initial-expires-at" // RFC 3339, UTC
)

// InstructionsPath is where Spec.Instructions arrives, relative to the
// sandbox user's home when there is no workspace, else to the workspace.
const InstructionsPath = ".sandboxer/instructions.md"

// Network is a default and what is allowed beyond it.
type Network struct {
	Default string       `json:"default"` // deny | allow
	Egress  []EgressRule `json:"egress,omitempty"`
}

// EgressRule allows one destination under default deny. Exactly one of CIDR
// and Domain is set.
type EgressRule struct {
	CIDR   string `json:"cidr,omitempty"`
	Domain string `json:"domain,omitempty"` // a leading "*." matches sub-domains
	Port   int    `json:"port"`             // 1-65535; 0 = every port
}

// Needs returns the enforcement the policy asks for.
func (n Network) Needs() Egress {
	if n.Default == "allow" {
		return EgressNone
	}
	need := EgressDenyOnly
	for _, r := range n.Egress {
		if r.Domain != "" {
			return EgressDomain
		}
		need = EgressCIDR
	}
	return need
}

// Workspace modes and access.
const (
	WorkspaceMirror          = "mirror"           // brought back on destroy and on demand
	WorkspaceRemoteCanonical = "remote-canonical" // the sandbox's copy is the truth

	AccessNone = "none"
	AccessRO   = "ro"
	AccessRW   = "rw"
)

// Workspace is the folder the sandbox works in.
type Workspace struct {
	Mode   string          `json:"mode"`
	Access string          `json:"access"`
	Repo   string          `json:"repo,omitempty"` // as requested: folder or git URL
	Ref    string          `json:"ref,omitempty"`
	Source WorkspaceSource `json:"-"` // nil = start empty
}

// Image is one container image: pulled, built, or built in stages.
type Image struct {
	Pull   string       `json:"pull,omitempty"`
	Build  *BuildStage  `json:"build,omitempty"`
	Stages []BuildStage `json:"stages,omitempty"` // in order; the last one's tag is run
	Keep   bool         `json:"keep,omitempty"`
}

// BuildStage is one docker build.
type BuildStage struct {
	Context    string            `json:"context"`
	Dockerfile string            `json:"dockerfile,omitempty"`
	Target     string            `json:"target,omitempty"`
	Args       map[string]string `json:"args,omitempty"`
	Tag        string            `json:"tag,omitempty"`
	ParentTag  string            `json:"parent_tag,omitempty"`
	CacheKey   string            `json:"cache_key,omitempty"`
}

// Compose names the stack's files inside the workspace or the profile's bundle.
type Compose struct {
	Files    []string `json:"files"`
	Service  string   `json:"service,omitempty"` // where exec goes by default
	Profiles []string `json:"profiles,omitempty"`
	EnvFiles []string `json:"env_files,omitempty"`
	// Variables are seen by interpolation of the files, over EnvFiles; no
	// service gets them for that.
	Variables map[string]string `json:"variables,omitempty"`
	Bundle    string            `json:"bundle,omitempty"` // folder beside the profile
	// BundleSource opens the folder Bundle names; nil where Bundle is empty.
	// The files are then those of the bundle, not of the workspace.
	BundleSource WorkspaceSource `json:"-"`
}

// AgentService is the service that Spec.Image and Containers.Agent become.
const AgentService = "agent"

// Containers is an agent container with its services, on one network.
type Containers struct {
	Agent    Container            `json:"agent"`
	Services map[string]Container `json:"services,omitempty"`
}

// Container is one container of Containers.
type Container struct {
	Image       Image             `json:"image"`
	Command     []string          `json:"command,omitempty"`
	Hostname    string            `json:"hostname,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
}

// Resources are limits; nil asks for none.
type Resources struct {
	CPU      *Milli `json:"cpu,omitempty"` // milli-vCPU
	MemoryMB *int64 `json:"memory_mb,omitempty"`
	DiskMB   *int64 `json:"disk_mb,omitempty"`
	GPU      *GPU   `json:"gpu,omitempty"`
	Pids     *int64 `json:"pids,omitempty"`
	// BestEffort accepts a place that cannot enforce a limit; the plan shows it.
	BestEffort bool `json:"best_effort,omitempty"`
}

// Milli is thousandths of one unit.
type Milli int64

// GPU asks for accelerators.
type GPU struct {
	Model string `json:"model,omitempty"` // "" = any
	Count int64  `json:"count"`
}

// Requires is what the place must satisfy. OS and Arch list the acceptable
// ones, as Go names them; none = any. Routing refuses a place that has none of
// them; one that has several makes one of these.
type Requires struct {
	Runtime      []string `json:"runtime,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"` // requirement kinds
	OS           []string `json:"os,omitempty"`
	Arch         []string `json:"arch,omitempty"`
}

// SettleDefault is how long each service of a stack that no health check judges
// must have run, since its own start, before its sandbox is ready, where a
// profile does not say. A service that ends within it with another code than 0,
// or that must not end at all, fails the create. Places that start nothing have
// nothing to wait for.
//
// BenchmarkCrashes of internal/bench prints what it follows from: what fails at
// its start ends within 1 s (sh, Python, Node; eight at once on two cores), what
// tries three times a second apart within 3.2 s. A name that nothing resolves
// takes Python 10 s, which no default waits for.
const SettleDefault = 4 * time.Second

// Probe decides readiness. Exactly one of Command, HTTP and TCP is set.
type Probe struct {
	Command  []string `json:"command,omitempty"`
	HTTP     string   `json:"http,omitempty"` // URL as seen inside: http://localhost:8080/health
	TCP      string   `json:"tcp,omitempty"`  // host:port as seen inside
	Service  string   `json:"service,omitempty"`
	Interval Duration `json:"interval"`
	Timeout  Duration `json:"timeout"`
}

// Duration marshals as Go's text form.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// SnapshotRef points a restore at a snapshot.
type SnapshotRef struct {
	ID     string         `json:"id"`
	Handle SnapshotHandle `json:"-"`
}
