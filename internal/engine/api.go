package engine

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var errUnbuilt = extensions.Errorf(extensions.KindInternal, "engine: under construction")

type Engine struct{ opts Options }

// New loads the catalog and checks the options. It opens no ledger and dials
// nothing, so every Terraform walk may call it.
func New(opts Options) (*Engine, error) { return &Engine{opts: opts}, nil }

// Close releases backends and the ledger. Sandboxes live on.
func (e *Engine) Close() error { return nil }

// Plan resolves, routes and prices req without dialling and without writing.
// known tells whether every argument that matters is known.
func (e *Engine) Plan(ctx context.Context, req Request) (Planned, error) { return Planned{}, errUnbuilt }

// PlanUpdate checks an in-place change of a live sandbox: a TTL its backend
// cannot give, a mode it does not have. It neither dials nor writes.
func (e *Engine) PlanUpdate(ctx context.Context, rec Receipt, old, req Request) ([]Notice, error) {
	return nil, errUnbuilt
}

// Create makes a sandbox. begun is called once the ledger holds the intent
// and before anything can exist elsewhere. Whenever a sandbox may exist the
// returned Sandbox has an ID, error or not.
func (e *Engine) Create(ctx context.Context, req Request, begun func(Sandbox), notify Notify) (Sandbox, error) {
	return Sandbox{}, errUnbuilt
}

// Get observes one sandbox. Errors by Kind: NotFound = proved absent (the
// error says since when and why, as far as known); Conflict = taken over by
// another owner; Unreachable = could not ask. An expired sandbox is no error.
// Get writes nothing.
func (e *Engine) Get(ctx context.Context, rec Receipt) (Sandbox, error) { return Sandbox{}, errUnbuilt }

// Lookup finds a sandbox in the ledger by id, or by account and name, with
// the request it was made from. It writes nothing and does not dial.
func (e *Engine) Lookup(ctx context.Context, id ID, account, name string) (Sandbox, error) {
	return Sandbox{}, errUnbuilt
}

// List reads the account's sandboxes from the ledger; all includes destroyed ones.
func (e *Engine) List(ctx context.Context, all bool) ([]Sandbox, error) { return nil, errUnbuilt }

// Update applies an in-place change (ttl, desired mode, hosts) and records
// what is state only.
func (e *Engine) Update(ctx context.Context, rec Receipt, req Request, notify Notify) (Sandbox, error) {
	return Sandbox{}, errUnbuilt
}

// ExtendTTL moves the end to created-at + ttl; see lifecycle.Retarget.
func (e *Engine) ExtendTTL(ctx context.Context, rec Receipt, ttl time.Duration) (Sandbox, error) {
	return Sandbox{}, errUnbuilt
}

// Recreate tears a sandbox down and makes it anew under the same id, one
// generation up.
func (e *Engine) Recreate(ctx context.Context, rec Receipt, secrets map[string]Secret, notify Notify) (Sandbox, error) {
	return Sandbox{}, errUnbuilt
}

// Destroy ends a sandbox and settles it. It works by id alone and is never
// blocked by the ledger. What is gone already is success.
func (e *Engine) Destroy(ctx context.Context, rec Receipt, opts DestroyOptions) (DestroyReport, error) {
	return DestroyReport{}, errUnbuilt
}

// Exec runs a command inside.
func (e *Engine) Exec(ctx context.Context, rec Receipt, req ExecRequest) (ExecResult, error) {
	return ExecResult{}, errUnbuilt
}

// Logs streams what the sandbox's own processes print.
func (e *Engine) Logs(ctx context.Context, rec Receipt, req extensions.LogRequest) (io.ReadCloser, error) {
	return nil, errUnbuilt
}

// Upload extracts a tar stream below dir inside.
func (e *Engine) Upload(ctx context.Context, rec Receipt, dir string, tar io.Reader) error {
	return errUnbuilt
}

// Download writes path inside as a tar stream.
func (e *Engine) Download(ctx context.Context, rec Receipt, path string, w io.Writer) error {
	return errUnbuilt
}

// SyncBack brings a mirrored workspace back now.
func (e *Engine) SyncBack(ctx context.Context, rec Receipt) (changed, conflicts []string, err error) {
	return nil, nil, errUnbuilt
}

// Snapshot keeps a checkpoint of a live sandbox.
func (e *Engine) Snapshot(ctx context.Context, rec Receipt, name string) (SnapshotView, error) {
	return SnapshotView{}, errUnbuilt
}

// GetSnapshot observes a snapshot; it needs no live sandbox. NotFound = proved absent.
func (e *Engine) GetSnapshot(ctx context.Context, s SnapshotView) (SnapshotView, error) {
	return SnapshotView{}, errUnbuilt
}

// LookupSnapshot finds a snapshot in the ledger by id.
func (e *Engine) LookupSnapshot(ctx context.Context, id string) (SnapshotView, error) {
	return SnapshotView{}, errUnbuilt
}

// DeleteSnapshot removes a snapshot; gone already is success.
func (e *Engine) DeleteSnapshot(ctx context.Context, s SnapshotView) error { return errUnbuilt }

// RegisterHost validates, probes and records a host. For a local host nothing is dialled.
func (e *Engine) RegisterHost(ctx context.Context, h Host) (HostView, error) {
	return HostView{}, errUnbuilt
}

// CheckHost validates a host's arguments without dialling.
func (e *Engine) CheckHost(h Host) error { return errUnbuilt }

// GetHost probes a host again. It never needs the ledger and writes nothing.
func (e *Engine) GetHost(ctx context.Context, h Host) (HostView, error) { return HostView{}, errUnbuilt }

// LookupHost finds a registered host by name (import). NotFound if there is none.
func (e *Engine) LookupHost(ctx context.Context, name string) (Host, error) { return Host{}, errUnbuilt }

// ForgetHost removes a host from the ledger; refused with KindConflict while
// sandboxes live on it, unless force.
func (e *Engine) ForgetHost(ctx context.Context, name string, force bool) error { return errUnbuilt }

// Recover settles what a dead process left in between. It runs by itself once
// before the first mutating operation of an Engine.
func (e *Engine) Recover(ctx context.Context, notify Notify) error { return errUnbuilt }

// Sweep ends what is overdue, settles what ended by itself and reports orphans.
func (e *Engine) Sweep(ctx context.Context, dryRun bool, notify Notify) (SweepReport, error) {
	return SweepReport{}, errUnbuilt
}

// VerifyLedger checks the ledger's chain and invariants; findings are empty when it is clean.
func (e *Engine) VerifyLedger(ctx context.Context) (events int64, findings []string, err error) {
	return 0, nil, errUnbuilt
}

// Event is one ledger entry for people.
type Event struct {
	Seq  int64
	At   time.Time
	Type string
	ID   string // of the sandbox, snapshot or host
	Data string // JSON
}

// Events reads the account's newest limit events, oldest first; id filters.
func (e *Engine) Events(ctx context.Context, id string, limit int) ([]Event, error) {
	return nil, errUnbuilt
}

// Charges reads a sandbox's settled charges.
func (e *Engine) Charges(ctx context.Context, id ID) ([]Charge, error) { return nil, errUnbuilt }
