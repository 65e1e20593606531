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
	// not started. If the transport fails once it may have been, that is
	// KindIndeterminate, even if nothing was heard of it: nobody may run it again
	// without being asked. A program that cannot be
	// started is exit code 127 (not found) or 126 (not executable) with the reason
	// on stderr, as in a shell. A grandchild that holds the streams open cannot
	// hang the caller: output is read until the command itself has ended and a
	// short grace has passed.
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
	More  bool     // the stream lacks others too, which nobody can name
	Why   string   // what was heard of it, for people
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

// URLGiver gives addresses at which the place itself answers for a port inside, to
// anybody on the network who has the URL's header. A raw connection of sandboxer's
// user is PortForwarder's.
type URLGiver interface {
	// URL returns the address of a port now. Something need not listen there yet. An
	// absent sandbox is KindNotFound, a paused one is refused as Paused says. Each call
	// may give another header and a later end.
	URL(ctx context.Context, h Handle, port int) (URL, error)
}

// URL is how a port inside is reached over HTTP.
type URL struct {
	Address string // without a secret
	// Header is what each request must carry. Without one, the address is enough;
	// IngressClosed excludes that.
	Header Header
	// ExpiresAt is when the header, or the address without one, ends to work; zero =
	// with the sandbox.
	ExpiresAt time.Time
}

// Header is one HTTP header that lets its owner in; zero = none.
type Header struct {
	Name  string
	Value Secret
}

// Snapshotter keeps checkpoints, as Descriptor.Snapshots declares them. Restore is
// Provision with Spec.FromSnapshot.
type Snapshotter interface {
	// Snapshot is idempotent by SnapshotSpec.ID. It works on a paused sandbox too,
	// which stays paused, unless Snapshots.RunningOnly is declared. A kind that is not declared is KindUnsupported. If it fails
	// and anything may exist, FindSnapshot finds that by the ID. One that ends its
	// sandbox (Snapshots.EndsSource) returns once it has.
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

// SnapshotReader sends its snapshots of the kinds Snapshots.Portable to other places
// of the same handler, where SnapshotRef.Source is the other end.
type SnapshotReader interface {
	// ReadSnapshot writes the whole snapshot as one stream in the adapter's own
	// format: always the same bytes, whose SHA-256 is Snapshot.Digest. What arrived
	// before an error is of no use. An absent snapshot is KindNotFound, another kind
	// KindUnsupported; then nothing is written.
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
	// Live permits a snapshot while everything runs on, so that its files may be of
	// different moments. Without it, nothing of the sandbox runs meanwhile.
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
	Digest    string // "sha256:…"; empty where the place tells none
	CreatedAt time.Time
	ExpiresAt time.Time // when the place deletes it by itself; zero = never
}

// Forker makes sandboxes from live ones, as Descriptor.Forks declares them. A fork is
// Provision with Spec.FromSandbox and Spec.Source: a sandbox of the same account, at the
// same place.
//
// The spec is the source's but for its identity, its lifetime and its secrets, and
// Workspace.Source is nil. The fork has the files of every container and every volume
// as they are at one moment; later writes of either do not reach the other. It has a
// network and names of its own. What the spec says is given anew, as to any other
// sandbox, and no secret of the source comes with it. A source that is ended meanwhile
// leaves a whole fork or none.
//
// The source stays as it is: running, or paused. Several forks of it can be made at
// once. A fork needs its source only until Provision has returned it, so the same
// Provision again succeeds without it. Whatever is made on the way is gone with the
// fork's Teardown at the latest; Find finds it, where Provision was cut off.
type Forker interface {
	// CanFork checks, without making anything, that h can be forked now. It fails as
	// Provision would: KindNotFound for an absent or ended source; as Paused says for a
	// paused one, with Forks.RunningOnly.
	CanFork(ctx context.Context, h Handle) error
}

// Pauser keeps a sandbox without running it. What runs stops where it is and goes on
// there at the resume, unless Pauses.EndsWhatRuns is declared: then the files are kept,
// and a command that ran is KindIndeterminate. Both calls are idempotent, and both observe the sandbox at
// their end as Status would, with Observation.Since. Its deadline is wall-clock and
// does not move; Capabilities.PausedExpiry says who ends a paused one. Status, Find,
// Teardown and SetGeneration work on a paused one, Extend too unless only a sweep ends it.
// Exec, FileTransfer, PortForwarder and URLGiver refuse it as Paused says and never resume it.
type Pauser interface {
	// Pause returns once nothing of the sandbox runs.
	Pause(ctx context.Context, h Handle) (Observation, error)
	// Resume returns once the sandbox is usable again. deadline is when it must end
	// now; a place that forgets or stops its own deadline meanwhile enforces this one.
	Resume(ctx context.Context, h Handle, deadline time.Time) (Observation, error)
}

// Paused is the error of a use of a paused sandbox.
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
	StartedAt, EndedAt time.Time     // zero = still running, or not told
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
// backend's sandboxes there, it returns them as Status would; nil means that it did
// not. A place that answers and cannot run anything is no error, but Unfit.
type Prober interface {
	Probe(ctx context.Context) (Facts, []Observation, error)
}

// Estimator predicts quantities that a backend bills beyond wall clock.
type Estimator interface {
	Estimate(ctx context.Context, spec Spec, d time.Duration) (Usage, error)
}

// ImagePreparer pulls or builds what a spec runs before its create, so that a failure
// is told before anything costs, and so that many sandboxes of one image wait for one
// preparation. The engine calls it once per place and Spec.ImageKey. Provision does
// not rely on it: what is no longer there it prepares again.
type ImagePreparer interface {
	// PrepareImage is idempotent and makes no sandbox. The same spec gives the same
	// digest, "sha256:" and 64 hex digits, on every machine and in every process, and a
	// second call rebuilds nothing. It tells what takes long by Progress. Errors are
	// Provision's. What it built and no sandbox uses, the place removes by itself
	// after a while.
	PrepareImage(ctx context.Context, spec Spec) (digest string, err error)
}

// GenerationSetter rewrites the generation on a live object, which fences off the
// former owner of an adopted sandbox on every machine.
type GenerationSetter interface {
	// SetGeneration raises the generation; one that is not above the stored
	// generation is KindConflict.
	SetGeneration(ctx context.Context, h Handle, generation int64) error
}
