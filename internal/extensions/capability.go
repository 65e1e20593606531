package extensions

import (
	"slices"
	"time"
)

// Isolation is the strength of the isolation between a sandbox and its host.
type Isolation string

// The levels in rising order of strength; a profile's level is a floor.
const (
	IsolationNone      Isolation = "none"
	IsolationProcess   Isolation = "process"
	IsolationContainer Isolation = "container"
	IsolationPolicy    Isolation = "policy"
	IsolationUserspace Isolation = "userspace-kernel" // a kernel of its own in user space, such as gVisor
	IsolationMicroVM   Isolation = "microvm"
	IsolationVM        Isolation = "vm"
)

// IsolationLevels lists every level, weakest first.
var IsolationLevels = []Isolation{IsolationNone, IsolationProcess, IsolationContainer, IsolationPolicy,
	IsolationUserspace, IsolationMicroVM, IsolationVM}

// Meets reports whether level i is at least floor. An unknown level meets nothing.
func (i Isolation) Meets(floor Isolation) bool {
	have, want := slices.Index(IsolationLevels, i), slices.Index(IsolationLevels, floor)
	return have >= 0 && want >= 0 && have >= want
}

// Expiry names the mechanism that ends an unsupervised sandbox at its deadline.
type Expiry string

const (
	ExpiryNative Expiry = "native" // the backend's own deadline
	ExpiryHost   Expiry = "host"   // a timer on the host
	ExpirySweep  Expiry = "sweep"  // the next changing run, or `sandboxer sweep`
)

// ExpiryLevels lists every value, weakest first.
var ExpiryLevels = []Expiry{ExpirySweep, ExpiryHost, ExpiryNative}

// Extend is the direction in which a place can move a deadline after create.
type Extend string

const (
	ExtendNone  Extend = "none"
	ExtendLater Extend = "later" // never earlier
	ExtendBoth  Extend = "both"
)

// Extends lists every value, weakest first.
var Extends = []Extend{ExtendNone, ExtendLater, ExtendBoth}

// Limit is one limit of Resources, by its field's name in a profile.
type Limit string

const (
	LimitCPU    Limit = "cpu"
	LimitMemory Limit = "memory_mb"
	LimitDisk   Limit = "disk_mb"
	LimitPids   Limit = "pids"
)

// Limits lists every limit.
var Limits = []Limit{LimitCPU, LimitMemory, LimitDisk, LimitPids}

// SecretDelivery is the way a place delivers secrets into a sandbox.
type SecretDelivery string

const (
	// SecretsEnv: environment variables. Programs inside can pass them on, and a
	// place may record them.
	SecretsEnv SecretDelivery = "env"
	// SecretsFile: files below SecretsDir, in memory, present before anything runs
	// and gone with the sandbox. No environment inside and no record, log or
	// snapshot of the place has them.
	SecretsFile SecretDelivery = "file"
)

// SecretDeliveries lists every value.
var SecretDeliveries = []SecretDelivery{SecretsEnv, SecretsFile}

// FindStrength is what an empty Find proves.
type FindStrength string

const (
	FindStrong   FindStrength = "strong"   // absent now
	FindEventual FindStrength = "eventual" // absent only after Settle and the native deadline sent at create
	FindNone     FindStrength = "none"     // nothing
)

// Find declares how well Backend.Find works.
type Find struct {
	Strength FindStrength
	// Settle is how long a new object may stay invisible; for FindEventual only.
	Settle time.Duration
	// Claim is the short first deadline of a create; for FindEventual only, 0 = none.
	// The engine records it before each Provision, sends it as Spec.Deadline and calls
	// Extend once it knows the handle, ready or not. After a lost answer, the name stays
	// taken for Claim instead of the whole ttl. Claim must exceed the duration of a
	// Provision; one that takes longer makes nothing and is KindUnavailable.
	Claim time.Duration
}

// SnapshotKind is what a snapshot holds.
type SnapshotKind string

const (
	SnapshotWorkspace  SnapshotKind = "workspace"  // the workspace, and the named volumes of a stack
	SnapshotFilesystem SnapshotKind = "filesystem" // also the containers' filesystems, or the sandbox's whole filesystem
	SnapshotMemory     SnapshotKind = "memory"     // also the running processes
	SnapshotMetadata   SnapshotKind = "metadata"   // the place's record of the sandbox, and its files
)

// SnapshotKinds lists every kind.
var SnapshotKinds = []SnapshotKind{SnapshotWorkspace, SnapshotFilesystem, SnapshotMemory, SnapshotMetadata}

// Snapshots declares the snapshots of a place; zero without PowerSnapshot. Price
// books hold the cost of storing them.
type Snapshots struct {
	// Kinds lists the kinds that the place can take, the default first.
	Kinds []SnapshotKind
	// Find is the strength of FindSnapshot; Settle counts from the end of Snapshot.
	// There is no claim.
	Find Find
	// StopsSource: a snapshot leaves the sandbox paused; needs PowerPause. The engine
	// resumes the sandbox if it was running.
	StopsSource bool
	// EndsSource: a snapshot ends the sandbox for good. Only the snapshot is left, so the
	// engine asks the user first. The ended sandbox stays until its Teardown, which
	// settles it. The engine tears it down last, because FindSnapshot may need it.
	EndsSource bool
	// RunningOnly: the place refuses a snapshot of a paused sandbox with Paused.
	RunningOnly bool
	// Expires is the longest time that the place keeps a snapshot; 0 = until it is deleted.
	Expires time.Duration
	// HoldsSecrets: a snapshot may hold secrets of its sandbox, as memory does. If false,
	// the conformance suite tests that no snapshot holds any.
	HoldsSecrets bool
	// Portable are the kinds that restore at another place of the same handler and
	// architecture, from the stream of ReadSnapshot; with PowerReadSnapshot only.
	Portable []SnapshotKind
}

// Forks declares the forks of a place; zero without PowerFork.
type Forks struct {
	// RunningOnly: the place refuses a fork of a paused sandbox with Paused.
	RunningOnly bool
	// HoldsSecrets: the source's processes continue in the fork, with the secrets in their
	// memory. If false, no secret of the source reaches the fork.
	HoldsSecrets bool
}

// Pauses declares the pauses of a place; zero without PowerPause.
type Pauses struct {
	// EndsWhatRuns: a pause stops the machine. Its processes end, and a resume starts the
	// machine again with its files. If false, a resume continues all processes.
	EndsWhatRuns bool
}

// ListFreshness is how current a list of all sandboxes is.
type ListFreshness string

const (
	ListStrong   ListFreshness = "strong"   // as of now
	ListEventual ListFreshness = "eventual" // a change may be missing for List.Lag
)

// List declares how current the answer of Status(nil) is. It is separate from Find: a
// place may find a new object at once but list it later. The engine checks a missing or
// still listed sandbox by its handle before it concludes anything.
type List struct {
	Freshness ListFreshness
	// Lag is how long a change may stay unseen; for ListEventual only.
	Lag time.Duration
}

// Recoverable reports whether a sandbox can be found by ID alone.
func (f Find) Recoverable() bool { return f.Strength == FindStrong || f.Strength == FindEventual }

// Power is an optional capability of a backend; each is one interface of powers.go.
// A backend implements exactly the powers it declares.
type Power string

const (
	PowerExec          Power = "exec"           // Execer
	PowerLogs          Power = "logs"           // LogStreamer
	PowerFiles         Power = "files"          // FileTransfer
	PowerPorts         Power = "ports"          // PortForwarder
	PowerURL           Power = "url"            // URLGiver
	PowerSnapshot      Power = "snapshot"       // Snapshotter
	PowerReadSnapshot  Power = "read-snapshot"  // SnapshotReader
	PowerFork          Power = "fork"           // Forker
	PowerPause         Power = "pause"          // Pauser
	PowerExtend        Power = "extend"         // Extender
	PowerUsage         Power = "usage"          // UsageReader
	PowerCapacity      Power = "capacity"       // CapacityReader
	PowerProbe         Power = "probe"          // Prober
	PowerEstimate      Power = "estimate"       // Estimator
	PowerPrepareImage  Power = "prepare-image"  // ImagePreparer
	PowerGenerationSet Power = "set-generation" // GenerationSetter
)

// Powers lists every power in the order the matrix shows them.
var Powers = []Power{PowerExec, PowerLogs, PowerFiles, PowerPorts, PowerURL, PowerSnapshot, PowerReadSnapshot, PowerFork, PowerPause,
	PowerExtend, PowerUsage, PowerCapacity, PowerProbe, PowerEstimate, PowerPrepareImage, PowerGenerationSet}

// Place is the kind of an extension's candidates.
type Place string

const (
	PlaceMachine Place = "machine" // this machine: a local host, or none named
	PlaceHost    Place = "host"    // a host of the user, over SSH
	PlaceAccount Place = "account" // an account of a vendor
)

// Places lists every kind.
var Places = []Place{PlaceMachine, PlaceHost, PlaceAccount}

// Billing models (billingModel) and the cost of an idle sandbox (idleCostModel).
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

// RegionUnstated is the region of a vendor's place whose user does not say where it is. No profile can demand it, and a policy
// about regions refuses it.
const RegionUnstated = "unstated"

// Capabilities is the full declaration. The first part is the matrix that sandbox
// platforms publish; the second is sandboxer's own. It is a ceiling, which the catalog
// and a probe at apply can only narrow. nil means unknown, never unlimited.
type Capabilities struct {
	TransportModel      string           // dial-in | dial-out | either: who opens the connection to a worker
	FsSnapshot          bool             // supportsFsSnapshot
	PauseResume         bool             // supportsPauseResume
	CapacityQuery       bool             // supportsCapacityQuery
	MaxConcurrent       *int64           // sandboxes at once
	MaxSessionDuration  time.Duration    // maxSessionDurationSeconds; 0 = no limit of the place
	Regions             []string         // "*" = any, or RegionUnstated
	OS                  []string         // "linux", "darwin", "windows"
	Arch                []string         // as Go names it: "amd64"; "*" = the host's own
	IdleCostModel       string           // zero | storage-only | metered
	BillingModel        string           // fixed | wall-clock | active-cpu | invocation
	MaxVCPU             *int64           // per sandbox
	MaxMemoryMB         *int64           // per sandbox
	GPU                 bool             // supportsGpu
	CustomNetworkPolicy bool             // supportsCustomNetworkPolicy: a per-sandbox allowlist
	EgressDefault       string           // what the place does when told nothing: allow-all | deny-all
	A2ARemote           bool             // isA2ARemote: the place is a remote agent, not a machine
	Provides            Provides         // class default of runtime and requirement kinds
	IsolationLevels     []Isolation      // weakest first
	PricingModel        string           // self-hosted | metered
	Egress              Egress           // what it can enforce
	CIDRPorts           EgressPorts      // of an allowed network; "" = it allows none
	DomainPorts         EgressPorts      // of an allowed name; "" = it allows none
	DNS                 DNS              // whether names can be looked up where the network is denied
	Ingress             Ingress          // who reaches a port inside where the network is denied
	Expiry              Expiry           // the strongest it offers
	PausedExpiry        Expiry           // who ends a paused one, at most Expiry; "" without PauseResume
	MaxTTL              time.Duration    // 0 = no limit of the place
	ExtendTTL           Extend           // where the deadline can be moved after create
	DeadlineGrain       time.Duration    // a deadline is rounded up to this, such as 1m; 0 = exact
	IdleReap            IdleReap         // who ends an idle one; see Spec.IdleReap
	ReadOnlyWorkspace   bool             // access: ro is enforced, not hoped for
	Limits              []Limit          // the resource limits that hold (a host may narrow this)
	CPUStep             Milli            // a CPU size is rounded up to this; 0 = any size
	MemoryStepMB        int64            // a memory size is rounded up to this; 0 = any size
	MemoryPerCPUMB      int64            // each vCPU comes with this much memory, and there is no other way to more; 0 = apart
	DiskStepMB          int64            // a disk size is rounded up to this; 0 = any size
	GPUModels           []string         // what resources.gpu.model can name; nil = not known
	SecretsAs           []SecretDelivery // how secrets can come inside; at least one
	Entrypoints         []EntrypointMode // what can run by itself; idle at least
}

// Provides lists the runtime kinds (native, npm, python-pip, http, …) and
// requirement kinds (git, gpu, toolchain:go, …) a place can satisfy.
type Provides struct {
	RuntimeKinds     []string
	RequirementKinds []string
}

// Requirement kinds that describe a place.
const (
	RequireWorkarea          = "workarea"           // a folder of its own to work in
	RequireGit               = "git"                // the workspace starts from a commit of a repository
	RequireFullHistory       = "full-history-clone" // with .git and the history of all branches
	RequireLongRunning       = "long-running"       // programs keep running after their caller disconnects
	RequireNetworkEgress     = "network-egress"     // can reach the network where the profile allows it
	RequireHostBinary        = "host-binary"        // runs what is installed on the machine
	RequirePersistentStorage = "persistent-storage" // files survive a restart of the processes and of the machine
	// RequireDesktop: a graphical desktop runs whenever the sandbox does, and its screen is a page at DesktopPort.
	RequireDesktop = "desktop"
)

// DesktopPort is where a sandbox that requires a desktop shows its screen, over HTTP inside.
const DesktopPort = 6080

// WorkspaceKinds are the kinds of every place with a workspace: the engine clones
// the repository and sends the place a tree.
var WorkspaceKinds = []string{RequireFullHistory, RequireGit, RequireWorkarea}

// With returns the union of p and more, each list sorted.
func (p Provides) With(more Provides) Provides {
	return Provides{RuntimeKinds: union(p.RuntimeKinds, more.RuntimeKinds), RequirementKinds: union(p.RequirementKinds, more.RequirementKinds)}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// SelfHosted reports whether the user owns the place, so that no vendor bills for it.
func (c Capabilities) SelfHosted() bool { return c.PricingModel == PricingSelfHosted }
