package extensions

import (
	"slices"
	"time"
)

// Isolation is the strength of the wall between a sandbox and its host.
type Isolation string

// The levels in rising order of strength; a profile's level is a floor.
const (
	IsolationNone      Isolation = "none"
	IsolationProcess   Isolation = "process"
	IsolationContainer Isolation = "container"
	IsolationPolicy    Isolation = "policy"
	IsolationMicroVM   Isolation = "microvm"
	IsolationVM        Isolation = "vm"
)

// IsolationLevels lists every level, weakest first.
var IsolationLevels = []Isolation{IsolationNone, IsolationProcess, IsolationContainer, IsolationPolicy, IsolationMicroVM, IsolationVM}

// Meets reports whether level i is at least floor. An unknown level meets nothing.
func (i Isolation) Meets(floor Isolation) bool {
	have, want := slices.Index(IsolationLevels, i), slices.Index(IsolationLevels, floor)
	return have >= 0 && want >= 0 && have >= want
}

// Egress says what part of an egress policy a place really enforces. Each
// value includes those before it.
type Egress string

const (
	EgressNone     Egress = "none"      // nothing is enforced: only default allow is honest
	EgressDenyOnly Egress = "deny-only" // all or nothing
	EgressCIDR     Egress = "cidr"      // deny with allowed networks and ports
	EgressDomain   Egress = "domain"    // deny with allowed names
)

// EgressLevels lists every value, weakest first.
var EgressLevels = []Egress{EgressNone, EgressDenyOnly, EgressCIDR, EgressDomain}

// Includes reports whether e enforces at least want.
func (e Egress) Includes(want Egress) bool {
	have, need := slices.Index(EgressLevels, e), slices.Index(EgressLevels, want)
	return have >= 0 && need >= 0 && have >= need
}

// Expiry says who ends a sandbox when its time is up and nobody watches.
type Expiry string

const (
	ExpiryNative Expiry = "native" // the backend's own deadline
	ExpiryHost   Expiry = "host"   // a timer on the host
	ExpirySweep  Expiry = "sweep"  // our next mutating run, or `sandboxer sweep`
)

// SecretDelivery is how secrets come into a sandbox.
type SecretDelivery string

const (
	// SecretsEnv: environment variables. What runs inside can pass them on, and
	// a place may keep them in its own records of what it runs.
	SecretsEnv SecretDelivery = "env"
	// SecretsFile: files below SecretsDir, in memory, there before anything runs
	// and gone with the sandbox. They are in no environment inside and in no
	// record, log or snapshot of the place.
	SecretsFile SecretDelivery = "file"
)

// SecretDeliveries lists every value.
var SecretDeliveries = []SecretDelivery{SecretsEnv, SecretsFile}

// FindStrength says what a Find that finds nothing proves.
type FindStrength string

const (
	FindStrong   FindStrength = "strong"   // absent now
	FindEventual FindStrength = "eventual" // absent only after Settle and the native deadline sent at create
	FindNone     FindStrength = "none"     // nothing
)

// Find declares how well Backend.Find works.
type Find struct {
	Strength FindStrength
	// Settle is how long a made object may stay invisible; for FindEventual only.
	Settle time.Duration
}

// Recoverable reports whether a sandbox can be found again by id alone.
func (f Find) Recoverable() bool { return f.Strength == FindStrong || f.Strength == FindEventual }

// Power is an optional ability of a backend; each names one interface of
// powers.go. Declared and implemented are the same set.
type Power string

const (
	PowerExec          Power = "exec"           // Execer
	PowerLogs          Power = "logs"           // LogStreamer
	PowerFiles         Power = "files"          // FileTransfer
	PowerPorts         Power = "ports"          // PortForwarder
	PowerSnapshot      Power = "snapshot"       // Snapshotter
	PowerFork          Power = "fork"           // Forker
	PowerPause         Power = "pause"          // Pauser
	PowerExtend        Power = "extend"         // Extender
	PowerUsage         Power = "usage"          // UsageReader
	PowerCapacity      Power = "capacity"       // CapacityReader
	PowerProbe         Power = "probe"          // HostProber
	PowerEstimate      Power = "estimate"       // Estimator
	PowerPrepareImage  Power = "prepare-image"  // ImagePreparer
	PowerGenerationSet Power = "set-generation" // GenerationSetter
)

// Powers lists every power in the order the matrix shows them.
var Powers = []Power{PowerExec, PowerLogs, PowerFiles, PowerPorts, PowerSnapshot, PowerFork, PowerPause, PowerExtend,
	PowerUsage, PowerCapacity, PowerProbe, PowerEstimate, PowerPrepareImage, PowerGenerationSet}

// Place says what a candidate of an extension is made of.
type Place string

const (
	PlaceMachine Place = "machine" // this machine: a local host, or none named
	PlaceHost    Place = "host"    // a host of the user, over SSH
	PlaceAccount Place = "account" // an account of a vendor
)

// Billing shapes (billingModel) and what an idle sandbox costs (idleCostModel).
const (
	BillingFixed      = "fixed"      // the place costs the same, used or not
	BillingWallClock  = "wall-clock" // from start to end
	BillingActiveCPU  = "active-cpu" // CPU while it computes
	BillingInvocation = "invocation" // per creation

	IdleZero        = "zero"
	IdleStorageOnly = "storage-only"
	IdleMetered     = "metered"

	PricingSelfHosted = "self-hosted" // infrastructure cost only, no wallet movement
	PricingMetered    = "metered"     // a vendor charges

	TransportDialIn  = "dial-in"
	TransportDialOut = "dial-out"
	TransportEither  = "either"

	NetworkAllow = "allow-all"
	NetworkDeny  = "deny-all"
)

// Capabilities is the full declaration. The first part is the matrix that
// sandbox platforms publish, the second what sandboxer adds. It is a ceiling:
// the catalog and what is found by probing at apply may only narrow it.
// nil means unknown, never unlimited.
type Capabilities struct {
	TransportModel         string           // dial-in | dial-out | either: who opens the connection to a worker
	FsSnapshot             bool             // supportsFsSnapshot
	PauseResume            bool             // supportsPauseResume
	CapacityQuery          bool             // supportsCapacityQuery
	MaxConcurrent          *int64           // sandboxes at once
	MaxSessionDuration     time.Duration    // maxSessionDurationSeconds; 0 = no limit of the place
	Regions                []string         // "*" = any
	OS                     []string         // "linux", "darwin", "windows"
	Arch                   []string         // as Go names it: "amd64"; "*" = the host's own
	IdleCostModel          string           // zero | storage-only | metered
	BillingModel           string           // fixed | wall-clock | active-cpu | invocation
	MaxVCPU                *int64           // per sandbox
	MaxMemoryMB            *int64           // per sandbox
	GPU                    bool             // supportsGpu
	CustomNetworkPolicy    bool             // supportsCustomNetworkPolicy: a per-sandbox allowlist
	EgressDefault          string           // what the place does when told nothing: allow-all | deny-all
	A2ARemote              bool             // isA2ARemote: the place is a remote agent, not a machine
	Provides               Provides         // class default of runtime and requirement kinds
	IsolationLevels        []Isolation      // weakest first
	PricingModel           string           // self-hosted | metered
	Egress                 Egress           // what it can enforce
	Expiry                 Expiry           // the strongest it offers
	MaxTTL                 time.Duration    // 0 = no limit of the place
	ExtendTTL              bool             // the deadline can be moved after create
	ReadOnlyWorkspace      bool             // access: ro is enforced, not hoped for
	EnforcesResourceLimits bool             // cpu and memory limits hold (a host may narrow this)
	SecretsAs              []SecretDelivery // how secrets can come inside; at least one
}

// Provides lists the runtime kinds (native, npm, python-pip, http, …) and
// requirement kinds (git, gpu, toolchain:go, …) a place can satisfy.
type Provides struct {
	RuntimeKinds     []string
	RequirementKinds []string
}

// Requirement kinds that describe what a place is and does.
const (
	RequireWorkarea          = "workarea"           // a folder of its own to work in
	RequireGit               = "git"                // the workspace starts from a commit of a repository
	RequireFullHistory       = "full-history-clone" // with .git and the history of all branches
	RequireLongRunning       = "long-running"       // programs run on when the one who started them has gone
	RequireNetworkEgress     = "network-egress"     // can reach the network where the profile allows it
	RequireHostBinary        = "host-binary"        // runs what is installed on the machine
	RequirePersistentStorage = "persistent-storage" // files survive a restart of what runs and of the machine
)

// WorkspaceKinds are what every place provides that takes a workspace: the
// engine clones the repository and the place is given a tree.
var WorkspaceKinds = []string{RequireFullHistory, RequireGit, RequireWorkarea}

// With returns p with the kinds of more that it lacks, each list sorted.
func (p Provides) With(more Provides) Provides {
	return Provides{RuntimeKinds: union(p.RuntimeKinds, more.RuntimeKinds), RequirementKinds: union(p.RequirementKinds, more.RequirementKinds)}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Narrowing is what a catalog may restrict; nil leaves the declaration alone.
type Narrowing struct {
	IsolationLevels    []Isolation
	PricingModel       *string
	Regions            []string
	MaxConcurrent      *int64
	MaxVCPU            *int64
	MaxMemoryMB        *int64
	MaxTTL             *time.Duration
	Egress             *Egress
	GPU                *bool
	ExtendTTL          *bool
	MaxSessionDuration *time.Duration
	SecretsAs          []SecretDelivery
}

// Narrow applies n. Anything that would widen the declaration is KindInvalid
// and names the field and what is declared.
func (c Capabilities) Narrow(n Narrowing) (Capabilities, error) {
	if err := within("isolation_levels", n.IsolationLevels, c.IsolationLevels); err != nil {
		return c, err
	}
	if n.IsolationLevels != nil {
		c.IsolationLevels = slices.Clone(n.IsolationLevels)
	}
	if n.PricingModel != nil && *n.PricingModel != c.PricingModel {
		if c.PricingModel == PricingSelfHosted || *n.PricingModel != PricingSelfHosted {
			return c, widens("pricing_model", *n.PricingModel, c.PricingModel)
		}
		c.PricingModel = *n.PricingModel // a vendor's software, run by its user
	}
	if err := within("secrets_as", n.SecretsAs, c.SecretsAs); err != nil {
		return c, err
	}
	if n.SecretsAs != nil {
		c.SecretsAs = slices.Clone(n.SecretsAs)
	}
	for _, r := range n.Regions {
		if !slices.Contains(c.Regions, "*") && !slices.Contains(c.Regions, r) {
			return c, widens("regions", r, c.Regions)
		}
	}
	if n.Regions != nil {
		c.Regions = slices.Clone(n.Regions)
	}
	for _, f := range []struct {
		name string
		to   *int64
		have **int64
	}{
		{"max_concurrent", n.MaxConcurrent, &c.MaxConcurrent},
		{"max_vcpu", n.MaxVCPU, &c.MaxVCPU},
		{"max_memory_mb", n.MaxMemoryMB, &c.MaxMemoryMB},
	} {
		if f.to == nil {
			continue
		}
		if *f.to < 0 || *f.have != nil && *f.to > **f.have {
			return c, widens(f.name, *f.to, *f.have)
		}
		*f.have = f.to
	}
	for _, f := range []struct {
		name string
		to   *time.Duration
		have *time.Duration
	}{
		{"max_ttl", n.MaxTTL, &c.MaxTTL},
		{"max_session_duration", n.MaxSessionDuration, &c.MaxSessionDuration},
	} {
		if f.to == nil {
			continue
		}
		if *f.to <= 0 || *f.have != 0 && *f.to > *f.have {
			return c, widens(f.name, *f.to, *f.have)
		}
		*f.have = *f.to
	}
	if n.Egress != nil {
		if !c.Egress.Includes(*n.Egress) {
			return c, widens("egress", *n.Egress, c.Egress)
		}
		c.Egress = *n.Egress
	}
	for _, f := range []struct {
		name string
		to   *bool
		have *bool
	}{{"gpu", n.GPU, &c.GPU}, {"extend_ttl", n.ExtendTTL, &c.ExtendTTL}} {
		if f.to == nil {
			continue
		}
		if *f.to && !*f.have {
			return c, widens(f.name, true, false)
		}
		*f.have = *f.to
	}
	return c, nil
}

func within[T comparable](field string, want, have []T) error {
	for _, w := range want {
		if !slices.Contains(have, w) {
			return widens(field, w, have)
		}
	}
	return nil
}

func widens(field string, want, have any) error {
	if p, ok := have.(*int64); ok && p != nil {
		have = *p
	}
	return Errorf(KindInvalid, "capabilities.%s: %v is wider than what the extension declares (%v)", field, want, have).
		WithRemedy("a catalog may narrow capabilities, never widen them")
}
