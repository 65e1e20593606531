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

// HostNarrower is implemented by an Extension of which a host may offer less
// than the descriptor's ceiling. Static like Describe: no network, no secret,
// so that plans refuse what the host's own arguments rule out.
type HostNarrower interface {
	// OnHost returns what is left of c on host h. facts is what probing found
	// there, nil where nobody has looked yet. Each reason says, for people,
	// what was taken away and what would bring it back, after what it is about
	// and a colon: "egress: …", "gpu: …", "expiry: …", "secrets: …".
	OnHost(c Capabilities, h Host, facts *HostFacts) (left Capabilities, reasons []string)
}

// SpecChecker is implemented by an Extension that can refuse a spec before
// anything is asked of the place, such as a Compose file against its policy.
type SpecChecker interface {
	// CheckSpec reads at most the spec's own sources. It uses no network.
	// Sources that are nil are not known yet: what depends on them is not
	// judged. Errors are KindInvalid or KindUnsupported, as Provision's would be.
	// notes say, for people, what of the spec's files is left out although
	// nothing forbids it; there are none beside an error.
	CheckSpec(ctx context.Context, cfg Config, spec Spec) (notes []string, err error)
}

// Config is all that a backend is opened with.
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
	// StateDir is a private folder (0700) of this user on this machine where
	// the extension may keep what belongs to it. The folder is shared by all
	// processes of the user and need not exist yet.
	StateDir string
}

// Backend is one opened account or host. All methods may be called from
// several goroutines. A cancelled context starts nothing new. No method lets a
// secret reach a handle, an error, a log line, an argument list or a label.
// "Could not ask" is KindUnreachable and never read as "absent".
type Backend interface {
	// Provision starts the sandbox that spec describes and writes spec.ID and
	// spec.Labels on the backend object before the object can cost anything.
	// It is idempotent by spec.ID for sequential calls: a second call with
	// the same id and generation adopts what the first one made. If it fails
	// and anything may exist, it still returns the Handle (Handle.IsZero is
	// false). The Observation may already be PhaseReady with Reachability,
	// in which case WaitReady is skipped. Failures are classified: Exhausted
	// (no room, quota), Unavailable (refused now, nothing made), Unreachable (no
	// connection, so that nothing was sent; with a Handle, after an earlier step
	// had arrived), Indeterminate (the answer was lost, or whether the request
	// arrived is not known), Invalid, Unauthorized, Unsupported.
	Provision(ctx context.Context, spec Spec) (Handle, Observation, error)

	// WaitReady blocks until the backend object can be used, readiness probe
	// included, and tells how to get in. It ends with the context. The probe
	// is the one of this spec: none where it has none, and asked even of an
	// object that counted as ready before.
	WaitReady(ctx context.Context, spec Spec, h Handle) (Reachability, error)

	// Status observes the given sandboxes in at most one round trip per host
	// or account. The answer has the length and order of handles; what could
	// not be observed is Observation{Phase: PhaseUnreachable, Err: ...} in its
	// place. With handles == nil it lists everything of this account here,
	// each with ID and Handle set. The error is for the call as a whole.
	Status(ctx context.Context, handles []Handle) ([]Observation, error)

	// Find looks a sandbox up by our own id alone. KindNotFound means proved
	// absent where Descriptor.Find is FindStrong; under FindEventual or
	// FindNone absence cannot be proved here and the answer is
	// KindIndeterminate. A sandbox some operation is busy with is
	// KindConflict with RetryAfter, never NotFound.
	Find(ctx context.Context, id ID) (Handle, error)

	// Teardown ends the sandbox, removes all of it and confirms its absence.
	// What is gone already is success. An object that does not carry the
	// handle's id is refused with KindConflict. Where the vendor forgets
	// usage at the end, it is read first and returned in the report.
	Teardown(ctx context.Context, h Handle) (CleanupReport, error)

	// Close releases connections and files of this process. Sandboxes live on.
	Close() error
}

// CleanupReport says what a teardown did.
type CleanupReport struct {
	// AlreadyGone is set when there was nothing left to end.
	AlreadyGone bool
	// Removed names what was removed, for people: "workspace", "network".
	Removed []string
	// Residue names what stays behind on purpose and why, such as a shared
	// build cache. Anything else left behind is an error instead.
	Residue []string
	// StartedAt and EndedAt are the backend's own times, zero where it does
	// not tell.
	StartedAt, EndedAt time.Time
	// Usage is the backend's own measure, nil where it does not tell.
	Usage *Usage
}

// WorkspaceSource opens the tar stream a workspace starts from. The engine
// made it: a folder was packed (ignore files honoured) or a git reference
// resolved to a commit. Entries are relative, clean, sorted and limited to
// folders, regular files and symbolic links.
type WorkspaceSource interface {
	// Open starts the stream anew; it may be called more than once.
	Open(ctx context.Context) (io.ReadCloser, error)
	// Digest is the lower-case hex SHA-256 of the stream's bytes.
	Digest() string
	// Size is the length of the stream in bytes.
	Size() int64
	// Origin names the source for people, without credentials: a path, or
	// "https://host/repo@commit".
	Origin() string
}
