package extensions

import (
	"context"
	"io"
	"time"
)

// Extension is one kind of place where sandboxes can run. It is static:
// Describe uses no network and no secret, so a plan may call it.
type Extension interface {
	// Describe returns the extension's static facts: the ceiling of what it
	// can do, the fields it accepts, how it bills. The answer never changes
	// within a process.
	Describe() Descriptor

	// Open prepares a backend for one account or one host. It may read files
	// and resolve local facts; it does not create anything that needs to be
	// cleaned up beyond what Close releases. A missing or refused credential
	// is KindUnauthorized; a machine that cannot run this extension at all is
	// KindUnsupported with a remedy.
	Open(ctx context.Context, cfg Config) (Backend, error)
}

// Opened returns b as a Backend, or err classified as a failure of "open".
func Opened[B Backend](b B, err error) (Backend, error) {
	if err != nil {
		return nil, Failed("open", "", err, nil)
	}
	return b, nil
}

// HostNarrower is implemented by an Extension whose capabilities depend on the
// host's arguments. It is static like Describe (no network, no secret), so plans
// can refuse hosts. Facts hold what a probe finds.
type HostNarrower interface {
	// OnHost returns the part of c that the arguments of host h allow. Each reason
	// says what is missing, as Facts.Notes do.
	OnHost(c Capabilities, h Host) (left Capabilities, reasons []string)
}

// Identifier is implemented by an Extension whose config or credentials name what a
// backend shows: an organization, a project, a gateway. Without it, the engine tells
// accounts apart by their credentials, so that a new key may be that of another account.
// It is static like Describe.
type Identifier interface {
	// Identity returns the name; "" if only the credentials themselves tell. Two
	// configs with one name show the same sandboxes. The engine keeps a digest of it.
	Identity(cfg Config) string
}

// SpecChecker is implemented by an Extension that can refuse a spec before it
// contacts the place, such as a Compose file that violates its policy.
type SpecChecker interface {
	// CheckSpec reads at most the spec's own sources. It uses no network. A nil
	// source is not known yet, and is not checked. Errors are KindInvalid or
	// KindUnsupported, as Provision's would be. notes describe, for people, parts
	// of the spec's files that are allowed but have no effect. On error, notes is
	// empty.
	CheckSpec(ctx context.Context, cfg Config, spec Spec) (notes []string, err error)
}

// Config has everything that opens a backend.
type Config struct {
	// Binding is the catalog's id of this use of the extension, such as
	// "ext.local". One handler may be bound several times.
	Binding string
	// Account is "org/workspace"; a backend that lists lists only this
	// account's sandboxes.
	Account string
	// Values is the binding's config section, already checked against
	// Descriptor.Config.
	Values map[string]any
	// Credentials holds the declared credential fields that were given.
	Credentials map[string]Secret
	// Host is set for extensions placed on a machine the user owns.
	Host *Host
	// AllowedCommands lists absolute paths of programs on this machine. The user of
	// sandboxer allows bindings to run them. No catalog can add to the list.
	AllowedCommands []string
	// StateDir is a private folder (0700) of this user on this machine where
	// the extension may keep what belongs to it. The folder is shared by all
	// processes of the user and need not exist yet.
	StateDir string
}

// Backend is one opened account or host. Its methods are safe for concurrent use. A
// canceled context starts nothing new. No method puts a secret into a handle, an
// error, a log line, an argument list or a label. KindUnreachable never means
// absent. No method retries: it classifies the answer (KindUnavailable, with
// RetryAfter if the place says when to retry; KindUnreachable; for calls without
// effect also KindIndeterminate), and the engine retries within its own limits.
type Backend interface {
	// Provision starts the sandbox that spec describes and writes spec.ID and
	// spec.Labels on the backend object before the object can cost anything. It is
	// idempotent by spec.ID for sequential calls: a second call with the same ID
	// and generation adopts the object of the first. If it fails and anything may
	// exist, it still returns the Handle (Handle.IsZero is false). The Observation
	// may already be PhaseReady with Reachability, in which case WaitReady is
	// skipped. Failures are classified: Exhausted (no capacity or quota),
	// Unavailable (refused now, nothing created), Unreachable (no connection, so
	// nothing was sent; with a Handle if an earlier step had arrived),
	// Indeterminate (the answer was lost, or the request may have arrived),
	// Invalid, Unauthorized, Unsupported (not here: a power, a size, an image or a
	// template that the place lacks, or a limit of the account's plan). Without a
	// Handle, Exhausted, Unavailable and Unsupported promise that nothing was made,
	// so the next place may be tried.
	Provision(ctx context.Context, spec Spec) (Handle, Observation, error)

	// WaitReady blocks until the backend object is usable and its readiness probe
	// succeeds. It returns the observation that Status would return then, in
	// PhaseReady. It stops when ctx is done. It uses this spec's probe, if any, even
	// if the object was ready before.
	WaitReady(ctx context.Context, spec Spec, h Handle) (Observation, error)

	// Status observes the given sandboxes in at most one round trip per host or
	// account. The answer has the length and order of handles; an object that could
	// not be observed is Observation{Phase: PhaseUnreachable, Err: ...}. With
	// handles == nil it lists all sandboxes of this account here, across all pages,
	// each exactly once and with ID and Handle set. A list that cannot be read to its
	// end is an error (KindUnavailable), never a shorter list. The error concerns the
	// whole call.
	Status(ctx context.Context, handles []Handle) ([]Observation, error)

	// Find looks a sandbox up by our own ID alone. With FindStrong in
	// Descriptor.Find, KindNotFound means proved absent; with FindEventual or
	// FindNone it cannot prove absence and returns KindIndeterminate. A sandbox
	// with an operation under way is KindConflict with RetryAfter, never NotFound.
	Find(ctx context.Context, id ID) (Handle, error)

	// Teardown ends the sandbox, removes all of it and confirms its absence. An
	// absent sandbox is success. An object without the handle's ID is KindConflict.
	// If the vendor forgets usage at the end, Teardown reads it first and returns
	// it in the report.
	Teardown(ctx context.Context, h Handle) (CleanupReport, error)

	// Close releases connections and files of this process. Sandboxes live on.
	Close() error
}

// CleanupReport is the result of a teardown.
type CleanupReport struct {
	// AlreadyGone is set when there was nothing left to end.
	AlreadyGone bool
	// Removed names what was removed, for people: "workspace", "network".
	Removed []string
	// Residue lists objects left on purpose and why, such as a shared build cache.
	// Any other residue is an error.
	Residue []string
	// StartedAt and EndedAt are the backend's own times, zero if unknown.
	StartedAt, EndedAt time.Time
	// Usage is the backend's own measure, nil if unknown.
	Usage *Usage
}

// WorkspaceSource opens the tar stream that a workspace starts from. The engine
// creates it from a folder (with its ignore files) or from a git reference resolved
// to a commit. Entries are relative, clean, sorted and limited to folders, regular
// files and symbolic links.
type WorkspaceSource interface {
	// Open starts the stream from its beginning; it may be called more than once.
	Open(ctx context.Context) (io.ReadCloser, error)
	// Digest is the lower-case hex SHA-256 of the stream's bytes.
	Digest() string
	// Size is the length of the stream in bytes.
	Size() int64
	// Origin names the source for people, without credentials: a path, or
	// "https://host/repo@commit".
	Origin() string
}
