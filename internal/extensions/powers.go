package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// DefaultExecTimeout applies when ExecRequest.Timeout is zero.
const DefaultExecTimeout = 300 * time.Second

// MaxExecTimeout is the longest ExecRequest.Timeout, as long as the longest ttl:
// a backend may add to it without leaving the range of time.Duration.
const MaxExecTimeout = 366 * 24 * time.Hour

// MaxExecOutput limits each captured stream of an exec, in bytes. Later output is
// dropped, and ExecResult says so; live writers get everything.
const MaxExecOutput = 1 << 20

// Execer runs commands inside a sandbox.
type Execer interface {
	// Exec runs one command to its end. A non-zero exit is a result, not an error.
	// A passed timeout is KindTimeout, with the output so far in the result, after
	// the command's whole process group was killed inside; the sandbox stays
	// usable. KindUnreachable and KindUnavailable say that the command was certainly
	// not started. If the transport fails after the command may have started, the
	// error is KindIndeterminate, even without any output: only the user may decide
	// to run it again. A program that cannot be started is exit code 127 (not found)
	// or 126 (not executable) with the reason on stderr, as in a shell. A grandchild
	// that holds the streams open cannot hang the caller: Exec reads output until the
	// command itself has ended and a short grace has passed.
	Exec(ctx context.Context, h Handle, req ExecRequest) (ExecResult, error)
}

// ExecRequest is one command. Exactly one of Command and Shell is set.
type ExecRequest struct {
	Command   []string // literal argv; nothing is expanded or quoted
	Shell     string   // a script for ShellPath -c
	ShellPath string   // "" = /bin/sh
	Stdin     io.Reader
	// Stdout and Stderr, if set, receive all output live, in addition to the
	// limited capture.
	Stdout, Stderr io.Writer
	TTY            *TTY
	Service        string // "" = the agent container or the service the profile names
	Dir            string // absolute, or relative to the workspace; "" = the workspace
	Env            map[string]string
	User           string        // "" = the sandbox's own; KindUnsupported if the place cannot run as this user
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
// symbolic links; further names of a file may come as hard links to an earlier
// entry. Names are bytes, any but "/" and NUL. Paths are absolute inside, or
// relative to the workspace.
type FileTransfer interface {
	// Upload extracts tar below dir, which it creates if missing. An entry outside
	// dir is KindInvalid, and nothing more is written.
	Upload(ctx context.Context, h Handle, dir string, tar io.Reader) error
	// Download writes path (a file, or a folder with all below it) as tar. A
	// missing path is KindNotFound. Sockets, FIFOs and devices are skipped. If
	// single objects cannot be read, the stream has all others and the error wraps
	// *Incomplete.
	Download(ctx context.Context, h Handle, path string, w io.Writer) error
}

// Incomplete is wrapped by the error of a Download whose stream is complete except
// for some objects.
type Incomplete struct {
	Paths []string // relative to the path asked for, each with all below it
	More  bool     // the stream lacks other objects too, whose paths are unknown
	Why   string   // the place's reason, for people
}

func (i *Incomplete) Error() string {
	text := fmt.Sprintf("%d objects could not be read", len(i.Paths))
	if i.More {
		text = "some objects could not be read"
	}
	if i.Why != "" {
		text += ": " + i.Why
	}
	return text
}

// PortForwarder connects to a port inside.
type PortForwarder interface {
	// Dial connects to port of service ("" = the one exec goes to). ctx limits only
	// the dial, not the connection. A connection with CloseWrite forwards the end
	// of writing. A port without a listener is KindUnavailable, an absent sandbox
	// KindNotFound.
	Dial(ctx context.Context, h Handle, service string, port int) (net.Conn, error)
}

// URLGiver returns addresses at which the place itself serves a port inside, to
// anyone on the network who has the URL's header. PortForwarder makes raw connections
// for sandboxer's user.
type URLGiver interface {
	// URL returns the current address of a port. Nothing needs to listen there yet. An
	// absent sandbox is KindNotFound, a paused one Paused. Each call may return another
	// header and a later expiry.
	URL(ctx context.Context, h Handle, port int) (URL, error)
}

// URL is the HTTP address of a port inside.
type URL struct {
	Address string // without a secret
	// Header must be on each request. If zero, the address is enough, which
	// IngressClosed excludes.
	Header Header
	// ExpiresAt is the time after which the header, or an address without one, no longer
	// works; zero = when the sandbox ends.
	ExpiresAt time.Time
}

// Header is one HTTP header that grants access; zero = none.
type Header struct {
	Name  string
	Value Secret
}

// Snapshotter keeps checkpoints, as Descriptor.Snapshots declares them. Restore is
// Provision with Spec.FromSnapshot.
type Snapshotter interface {
	// Snapshot is idempotent by SnapshotSpec.ID. It works on a paused sandbox too,
	// which stays paused, unless Snapshots.RunningOnly is declared. An undeclared kind
	// is KindUnsupported. If it fails and anything may exist, FindSnapshot finds that by
	// the ID. With Snapshots.EndsSource, it returns after the sandbox has ended.
	Snapshot(ctx context.Context, h Handle, spec SnapshotSpec) (Snapshot, error)
	// FindSnapshot follows the rules of Backend.Find, with the strength of
	// Snapshots.Find.
	FindSnapshot(ctx context.Context, id string) (Snapshot, error)
	// StatSnapshot is KindNotFound when proved absent.
	StatSnapshot(ctx context.Context, h SnapshotHandle) (Snapshot, error)
	// DeleteSnapshot succeeds for an absent snapshot and refuses one without the
	// ID.
	DeleteSnapshot(ctx context.Context, h SnapshotHandle) error
}

// SnapshotReader sends snapshots of the kinds Snapshots.Portable to other places of
// the same handler, which read them from SnapshotRef.Source.
type SnapshotReader interface {
	// ReadSnapshot writes the whole snapshot as one stream in the adapter's own
	// format: always the same bytes, whose SHA-256 is Snapshot.Digest. After an error,
	// the bytes written so far are useless. An absent snapshot is KindNotFound, another
	// kind KindUnsupported; then nothing is written.
	ReadSnapshot(ctx context.Context, h SnapshotHandle, w io.Writer) error
}

// SnapshotSpec identifies a snapshot before it exists.
type SnapshotSpec struct {
	ID        string // see NewSnapshotID
	Name      string
	Account   string
	CreatedAt time.Time
	// Kind is one of Snapshots.Kinds; "" = the first.
	Kind SnapshotKind
	// Live permits a snapshot of running processes, so its files may be of different
	// moments. Without it, nothing in the sandbox runs during the snapshot.
	Live bool
}

// CheckKind refuses a kind that is not declared.
func (s SnapshotSpec) CheckKind(declared Snapshots) error {
	if s.Kind == "" || slices.Contains(declared.Kinds, s.Kind) {
		return nil
	}
	return Errorf(KindUnsupported, "a snapshot of kind %q cannot be taken here", s.Kind).
		WithRemedy("use one of %v, or leave it out", declared.Kinds)
}

// SnapshotHandle is the durable pointer to a snapshot, as Handle is to a sandbox.
type SnapshotHandle struct {
	Extension string          `json:"extension"`
	Version   int             `json:"version"`
	ID        string          `json:"id"`
	Ref       string          `json:"ref"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// Check refuses, with KindInvalid, a handle of another extension or version of Data's
// format, or without a valid ID.
func (h SnapshotHandle) Check(extension string, version int) error {
	if h.Extension != extension || h.Version != version || !ValidSnapshotID(h.ID) {
		return Errorf(KindInvalid, "this is not the handle of a snapshot of %s version %d", extension, version)
	}
	return nil
}

// Snapshot is one kept checkpoint.
type Snapshot struct {
	Handle    SnapshotHandle
	SandboxID ID
	Kind      SnapshotKind
	SizeBytes int64
	Digest    string // "sha256:…"; empty if the place reports none
	CreatedAt time.Time
	ExpiresAt time.Time // when the place deletes it by itself; zero = never
}

// Forker makes sandboxes from live ones, as Descriptor.Forks declares. A fork is
// Provision with Spec.FromSandbox and Spec.Source: a sandbox of the same account, at the
// same place.
//
// The fork's spec equals the source's except for identity, lifetime and secrets, and
// Workspace.Source is nil. The fork gets the files of all containers and volumes as of
// one moment; later writes in either do not reach the other. It has its own network and
// names. It gets everything in its spec anew, as any other sandbox does, and no secret
// of the source. If the source ends meanwhile, the fork is complete or does not exist.
//
// The source stays running or paused. Several forks of it can be made at once. A fork
// needs its source only until Provision has returned, so repeating that Provision
// succeeds without the source. The fork's Teardown removes all intermediate objects at
// the latest; Find finds them if Provision was interrupted.
type Forker interface {
	// CanFork checks, without making anything, that h can be forked now. It fails as
	// Provision would: KindNotFound for an absent or ended source, and with
	// Forks.RunningOnly, Paused for a paused one.
	CanFork(ctx context.Context, h Handle) error
}

// Pauser keeps a sandbox without running it. Processes stop and continue at the resume,
// unless Pauses.EndsWhatRuns is declared: then only the files are kept, and a running
// command is KindIndeterminate. Both calls are idempotent and return the observation
// that Status would return at their end, with Observation.Since. The deadline is
// wall-clock and does not move; Capabilities.PausedExpiry says who ends a paused
// sandbox. Status, Find, Teardown and SetGeneration work on a paused sandbox, and so
// does Extend unless only a sweep ends it. Exec, FileTransfer, PortForwarder and
// URLGiver refuse it with Paused and never resume it.
type Pauser interface {
	// Pause returns once nothing in the sandbox runs.
	Pause(ctx context.Context, h Handle) (Observation, error)
	// Resume returns once the sandbox is usable again. deadline is its new end; a place
	// whose own deadline stops or is lost during a pause enforces this one.
	Resume(ctx context.Context, h Handle, deadline time.Time) (Observation, error)
}

// Paused returns the KindConflict error for the use of a paused sandbox.
func Paused(id ID) *Error {
	err := Errorf(KindConflict, "it is paused, so nothing can be run, copied or reached in it")
	err.ID = id
	return err.WithRemedy("resume it: `sandboxer resume %s`, or desired_mode = \"running\"", id)
}

// Extender moves the deadline that the backend or the host enforces.
type Extender interface {
	// Extend sets the deadline, earlier or later than before. An ended
	// sandbox is KindNotFound. With ExtendLater, an earlier deadline is
	// KindUnsupported, and the old one stays.
	Extend(ctx context.Context, h Handle, deadline time.Time) error
}

// UsageReader reads the backend's own meter (meter_actual).
type UsageReader interface {
	Usage(ctx context.Context, h Handle) (Usage, error)
}

// Usage has a backend's measurements. A nil quantity was not measured.
type Usage struct {
	StartedAt, EndedAt time.Time     // zero = still running, or unknown
	Running, Paused    time.Duration // wall clock
	CPUMillis          *int64        // milliseconds of one vCPU, active
	MemoryMiBMillis    *int64        // MiB x ms, allocated
	EgressBytes        *int64
}

// CapacityReader returns a place's limit and use.
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

// Prober finds out what the place really offers. If the same call also lists the
// backend's sandboxes there, it returns them as Status would, else nil. A place that
// answers but cannot run anything is not an error: Facts.Unfit says why.
type Prober interface {
	Probe(ctx context.Context) (Facts, []Observation, error)
}

// Estimator predicts quantities that a backend bills beyond wall clock.
type Estimator interface {
	Estimate(ctx context.Context, spec Spec, d time.Duration) (Usage, error)
}

// ImagePreparer pulls or builds a spec's images before its create, so that failures
// surface before anything costs, and many sandboxes of one image wait for one
// preparation. The engine calls it once per place and Spec.ImageKey. Provision does
// not rely on it: it prepares missing images again.
type ImagePreparer interface {
	// PrepareImage is idempotent and makes no sandbox. The same spec gives the same
	// digest, "sha256:" and 64 hex digits, on every machine and in every process, and a
	// second call rebuilds nothing. It reports long steps by Progress. Errors are
	// Provision's. The place removes built images that no sandbox uses after a while.
	PrepareImage(ctx context.Context, spec Spec) (digest string, err error)
}

// GenerationSetter rewrites the generation on a live object, which fences off the
// former owner of an adopted sandbox on every machine.
type GenerationSetter interface {
	// SetGeneration raises the generation; one that is not above the stored
	// generation is KindConflict.
	SetGeneration(ctx context.Context, h Handle, generation int64) error
}
