package extensions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"path"
	"strings"
	"time"
)

// Spec is a resolved profile with its inputs: complete and frozen. An adapter needs
// nothing else to provision, and refuses a spec that it cannot carry out.
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
	// Source is the handle of FromSandbox.
	Source     Handle     `json:"-"`
	Registries Registries `json:"-"` // logins for the images to pull
	// Region is where the vendor of an account must create it; "" = its own choice.
	// Machines and hosts ignore it.
	Region string `json:"-"`
	// ProbeLater: Provision neither probes readiness nor waits for Settle. The
	// toolchain's commands run first; then WaitReady does both.
	ProbeLater bool `json:"-"`

	Profile   string    `json:"profile"`
	Version   string    `json:"version"`
	Isolation Isolation `json:"isolation"` // the floor
	// Direct asks for isolation none as such, not as a floor: on this machine, as its caller, without walls. Only
	// places that declare IsolationNone take it; the network is then allowed, and limits are best effort.
	Direct       bool              `json:"direct,omitempty"`
	Network      Network           `json:"network"`
	Workspace    Workspace         `json:"workspace"`
	Image        *Image            `json:"image,omitempty"`
	Compose      *Compose          `json:"compose,omitempty"`
	Containers   *Containers       `json:"containers,omitempty"`
	Entrypoint   Entrypoint        `json:"entrypoint,omitzero"`
	Scope        string            `json:"scope"` // session | agent | shared
	TTL          Duration          `json:"-"`     // changes in place
	MaxTTL       Duration          `json:"max_ttl,omitempty"`
	IdleReap     Duration          `json:"idle_reap,omitempty"` // see idle.go; 0 = never
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
	FromSandbox  ID                `json:"from_sandbox,omitempty"` // see Forker
}

// Hash is the lower-case hex SHA-256 of the resolved request. It excludes identity,
// labels, deadline, generation, secret values and workspace bytes, so the same
// request has the same hash at any time, anywhere.
func (s Spec) Hash() string {
	b, err := json.Marshal(s)
	if err != nil { // inputs and options were decoded from YAML or JSON
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Labels of every backend object. They cannot change later (except by
// GenerationSetter), so no label decides expiry. The engine queries objects only by id
// and by account, so these two labels must be queryable. The others are read with the
// object and may be in any of its fields. Package extensions/internal/labels fits them
// into places that accept only short values or few labels.
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

// Network is a default and its exceptions.
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

// Allowed returns the networks and the names of the allowlist; neither is nil.
func (n Network) Allowed() (networks, names []string) {
	networks, names = []string{}, []string{}
	for _, r := range n.Egress {
		if r.Domain != "" {
			names = append(names, r.Domain)
		} else {
			networks = append(networks, r.CIDR)
		}
	}
	return networks, names
}

// Needs returns the enforcement the policy asks for.
func (n Network) Needs() Egress {
	if n.Default == "allow" {
		return EgressNone
	}
	need := EgressDenyOnly
	for _, r := range n.Egress {
		rule := EgressCIDR
		if r.Domain != "" {
			rule = EgressDomainOnly
		}
		if need == EgressDenyOnly {
			need = rule
		} else if need != rule {
			return EgressDomain
		}
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

// Workspace is the sandbox's working folder.
type Workspace struct {
	Mode   string          `json:"mode"`
	Access string          `json:"access"`
	Repo   string          `json:"repo,omitempty"` // as requested: folder or git URL
	Ref    string          `json:"ref,omitempty"`
	Source WorkspaceSource `json:"-"` // nil = start empty
}

// WorkDir returns the workspace folder of a new sandbox: the value of option, or
// otherwise without one; "" = it has no workspace.
func (s Spec) WorkDir(option, otherwise string) string {
	if s.Workspace.Access == AccessNone {
		return ""
	}
	return path.Clean(cmp.Or(Text(s.Options, option), otherwise))
}

// Compose names the stack's files inside the workspace or the profile's bundle.
type Compose struct {
	Files    []string `json:"files"`
	Service  string   `json:"service,omitempty"` // where exec goes by default
	Profiles []string `json:"profiles,omitempty"`
	EnvFiles []string `json:"env_files,omitempty"`
	// Variables are for interpolation in the files, over EnvFiles; services do not
	// get them.
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

// Over returns r, with base's values for the fields that r does not set.
func (r Resources) Over(base Resources) Resources {
	out := base
	for _, f := range []struct{ from, to **int64 }{{&r.MemoryMB, &out.MemoryMB}, {&r.DiskMB, &out.DiskMB}, {&r.Pids, &out.Pids}} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	if r.CPU != nil {
		out.CPU = r.CPU
	}
	if r.GPU != nil {
		out.GPU = r.GPU
	}
	return out
}

// Limits lists the limits that r asks for.
func (r Resources) Limits() (asked []Limit) {
	for _, l := range []struct {
		limit Limit
		set   bool
	}{{LimitCPU, r.CPU != nil}, {LimitMemory, r.MemoryMB != nil}, {LimitDisk, r.DiskMB != nil}, {LimitPids, r.Pids != nil}} {
		if l.set {
			asked = append(asked, l.limit)
		}
	}
	return asked
}

// RoundUp returns r with each size rounded up to c's step. If memory comes with the
// vCPUs, it raises each of the two to match the other. A size too large to round stays.
func (r Resources) RoundUp(c Capabilities) Resources {
	if per := c.MemoryPerCPUMB; per > 0 && (r.CPU != nil || r.MemoryMB != nil) {
		var cpu Milli
		if r.CPU != nil {
			cpu = *r.CPU
		}
		if r.MemoryMB != nil && *r.MemoryMB > int64(cpu)*per/1000 && *r.MemoryMB < math.MaxInt64/1000 {
			cpu = Milli((*r.MemoryMB*1000 + per - 1) / per)
		}
		r.CPU = stepped(&cpu, c.CPUStep)
		memory := int64(*r.CPU) * per / 1000
		r.MemoryMB = &memory
	}
	r.CPU = stepped(r.CPU, c.CPUStep)
	r.MemoryMB, r.DiskMB = stepped(r.MemoryMB, c.MemoryStepMB), stepped(r.DiskMB, c.DiskStepMB)
	return r
}

func stepped[N ~int64](size *N, step N) *N {
	if size == nil || step <= 0 || *size%step == 0 {
		return size
	}
	if up := *size - *size%step + step; up > *size {
		return &up
	}
	return size
}

// Milli is thousandths of one unit.
type Milli int64

// GPU asks for accelerators.
type GPU struct {
	Model string `json:"model,omitempty"` // "" = any
	Count int64  `json:"count"`
}

// Requires lists what the place must provide. OS and Arch list acceptable values by
// Go's names; none = any. Routing refuses a place that has none of them; a place that
// has several uses one of these.
type Requires struct {
	Runtime      []string `json:"runtime,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"` // requirement kinds
	OS           []string `json:"os,omitempty"`
	Arch         []string `json:"arch,omitempty"`
}

// SettleDefault is how long each service of a stack without a health check must
// run, from its own start, before its sandbox is ready, unless the profile sets it.
// A service that ends earlier with a code other than 0, or that must not end, fails
// the create. Places that start nothing do not wait.
//
// BenchmarkCrashes of internal/bench prints its basis: a program that fails at its
// start ends within 1 s (sh, Python, Node; eight at once on two cores), one with
// three attempts a second apart within 3.2 s. Python takes 10 s for an unresolvable
// name, which is too long for a default.
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

// CheckGeneration refuses, with KindConflict, to take over an existing object of
// another generation.
func (s Spec) CheckGeneration(exists int64) error {
	if exists == s.Generation {
		return nil
	}
	return Errorf(KindConflict, "generation %d of this sandbox exists, want %d", exists, s.Generation).
		WithRemedy("tear the other generation down first")
}

// SnapshotRef points a restore at a snapshot.
type SnapshotRef struct {
	ID     string         `json:"id"`
	Handle SnapshotHandle `json:"-"`
	// Source has the bytes of a snapshot that another place keeps; Handle then points
	// into that place. nil = this place keeps it. The place stages the bytes and
	// commits the result only after it has verified their digest (else KindInvalid). It
	// keeps no snapshot of them.
	Source SnapshotSource `json:"-"`
}

// SnapshotSource is the stream of another place's ReadSnapshot.
type SnapshotSource interface {
	// Open begins the stream, which passes through this process as it is read. A
	// Provision opens it once. Read returns the other place's errors.
	Open(ctx context.Context) (io.ReadCloser, error)
	// Digest is the snapshot's: "sha256:" and 64 lower-case hex digits.
	Digest() string
	Kind() SnapshotKind
}

// HexOfDigest returns the hex digits of a digest "sha256:…"; false if it is malformed.
func HexOfDigest(digest string) (string, bool) {
	digits, ok := strings.CutPrefix(digest, "sha256:")
	sum, err := hex.DecodeString(digits)
	return digits, ok && err == nil && len(sum) == sha256.Size && digits == hex.EncodeToString(sum)
}
