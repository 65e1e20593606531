package extensions

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"time"
)

// DefaultExecTimeout applies when ExecRequest.Timeout is zero.
const DefaultExecTimeout = 300 * time.Second

// MaxExecTimeout is the longest ExecRequest.Timeout, as long as the longest ttl:
// a backend may add to it without leaving the range of time.Duration.
const MaxExecTimeout = 366 * 24 * time.Hour

// MaxExecOutput bounds each captured stream of an exec, in bytes. What comes
// after it is dropped and ExecResult says so; live writers get everything.
const MaxExecOutput = 1 << 20

// Execer runs commands inside a sandbox.
type Execer interface {
	// Exec runs one command to its end. A non-zero exit is a result, not an
	// error. A passed timeout is KindTimeout, with what was captured so far
	// in the result, after the command's whole process group was killed
	// inside; the sandbox stays usable. A transport failure is
	// KindUnreachable. A program that cannot be started is exit code 127
	// (not found) or 126 (not executable) with the reason on stderr, as a
	// shell has it. A grandchild that holds the streams open
	// cannot hang the caller: output is read until the command itself has
	// ended and a short grace has passed.
	Exec(ctx context.Context, h Handle, req ExecRequest) (ExecResult, error)
}

// ExecRequest is one command. Exactly one of Command and Shell is set.
type ExecRequest struct {
	Command   []string // literal argv; nothing is expanded or quoted
	Shell     string   // a script for ShellPath -c
	ShellPath string   // "" = /bin/sh
	Stdin     io.Reader
	// Stdout and Stderr, if set, get output live and whole, beside the
	// bounded capture.
	Stdout, Stderr io.Writer
	TTY            *TTY
	Service        string // "" = the agent container or the service the profile names
	Dir            string // absolute, or relative to the workspace; "" = the workspace
	Env            map[string]string
	User           string        // "" = the sandbox's own; one the place cannot give is KindUnsupported
	Timeout        time.Duration // 0 = DefaultExecTimeout; negative or above MaxExecTimeout is KindInvalid
}

// TTY asks for a terminal; streams are then merged.
type TTY struct {
	Rows, Cols uint16
	Resize     <-chan [2]uint16 // rows, cols; may be nil
}

// ExecResult is a finished (or, with KindTimeout, a killed) command.
type ExecResult struct {
	ExitCode                         int // 128+n when ended by signal n
	Stdout, Stderr                   []byte
	Merged                           bool // the backend mixes both streams into Stdout
	StdoutTruncated, StderrTruncated bool
	Duration                         time.Duration
}

// LogStreamer reads what a sandbox's own processes print.
type LogStreamer interface {
	Logs(ctx context.Context, h Handle, req LogRequest) (io.ReadCloser, error)
}

// LogRequest selects logs.
type LogRequest struct {
	Service string // "" = all
	Follow  bool
	Tail    int // last lines only; 0 = all that is kept
}

// FileTransfer moves files as tar streams of folders, regular files and
// symbolic links. Paths are absolute inside, or relative to the workspace.
type FileTransfer interface {
	// Upload extracts tar below dir, which is made if missing. Entries that
	// would leave dir are KindInvalid and nothing more is written.
	Upload(ctx context.Context, h Handle, dir string, tar io.Reader) error
	// Download writes path (a file, or a folder with all below it) as tar.
	// A missing path is KindNotFound.
	Download(ctx context.Context, h Handle, path string, w io.Writer) error
}

// PortForwarder connects to a port inside.
type PortForwarder interface {
	// Dial connects to port of service ("" = the one exec goes to). The
	// connection outlives ctx, which bounds its making only. It passes the end
	// of writing on where it has a CloseWrite. Nobody listening is
	// KindUnavailable, a sandbox that is gone KindNotFound.
	Dial(ctx context.Context, h Handle, service string, port int) (net.Conn, error)
}

// Snapshotter keeps checkpoints. Restore is Provision with Spec.FromSnapshot.
type Snapshotter interface {
	// Snapshot is idempotent by SnapshotSpec.ID.
	Snapshot(ctx context.Context, h Handle, spec SnapshotSpec) (Snapshot, error)
	// FindSnapshot follows the rules of Backend.Find.
	FindSnapshot(ctx context.Context, id string) (Snapshot, error)
	// StatSnapshot is KindNotFound when proved absent.
	StatSnapshot(ctx context.Context, h SnapshotHandle) (Snapshot, error)
	// DeleteSnapshot succeeds on what is gone and refuses what does not carry the id.
	DeleteSnapshot(ctx context.Context, h SnapshotHandle) error
}

// SnapshotSpec names a snapshot before it is made.
type SnapshotSpec struct {
	ID        string // see NewSnapshotID
	Name      string
	Account   string
	CreatedAt time.Time
}

// SnapshotHandle is the durable pointer to a snapshot, as Handle is to a sandbox.
type SnapshotHandle struct {
	Extension string          `json:"extension"`
	Version   int             `json:"version"`
	ID        string          `json:"id"`
	Ref       string          `json:"ref"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// Snapshot is one kept checkpoint.
type Snapshot struct {
	Handle    SnapshotHandle
	SandboxID ID
	Kind      string // "workspace" | "filesystem" | "memory" | "metadata"
	SizeBytes int64
	Digest    string // "sha256:…"; empty where the place tells none
	CreatedAt time.Time
}

// Forker marks a backend whose Provision honours Spec.FromSandbox.
type Forker interface {
	// CanFork checks, without making anything, that h can be forked now.
	CanFork(ctx context.Context, h Handle) error
}

// Pauser keeps a sandbox without running it. Both calls are idempotent.
type Pauser interface {
	Pause(ctx context.Context, h Handle) error
	Resume(ctx context.Context, h Handle) error
}

// Extender moves the end that the backend or the host enforces.
type Extender interface {
	// Extend sets the deadline, earlier or later than before. An ended
	// sandbox is KindNotFound.
	Extend(ctx context.Context, h Handle, deadline time.Time) error
}

// UsageReader reads the backend's own meter (meter_actual).
type UsageReader interface {
	Usage(ctx context.Context, h Handle) (Usage, error)
}

// Usage is what a backend measured. Nil quantities were not measured.
type Usage struct {
	StartedAt, EndedAt time.Time     // zero = still running, or not told
	Running, Paused    time.Duration // wall clock
	CPUMillis          *int64        // milliseconds of one vCPU, active
	MemoryMiBMillis    *int64        // MiB x ms, allocated
	EgressBytes        *int64
}

// CapacityReader tells how much room there is.
type CapacityReader interface {
	Capacity(ctx context.Context) (Capacity, error)
}

// Capacity counts sandboxes; nil is unknown, never unlimited.
type Capacity struct {
	Used, Max      *int64
	FreeVCPU       *int64
	FreeMemoryMB   *int64
	FreeDiskMB     *int64
	ObservedAt     time.Time
	SharedByOthers bool // others use the same place, so the figures age at once
}

// HostProber finds a host's facts. With them comes what Status would tell of all
// that the backend holds there, where one question brings both; nil means that
// it was not asked.
type HostProber interface {
	Probe(ctx context.Context) (HostFacts, []Observation, error)
}

// Estimator predicts quantities that a backend bills beyond wall clock.
type Estimator interface {
	Estimate(ctx context.Context, spec Spec, d time.Duration) (Usage, error)
}

// ImagePreparer pulls or builds what a spec needs before create, once per
// digest, and returns the digest.
type ImagePreparer interface {
	PrepareImage(ctx context.Context, spec Spec) (digest string, err error)
}

// GenerationSetter rewrites the generation on a live object, so that the
// former owner of an adopted sandbox is fenced off on every machine.
type GenerationSetter interface {
	// SetGeneration raises the generation; a lower or equal one than stored is KindConflict.
	SetGeneration(ctx context.Context, h Handle, generation int64) error
}
