package engine

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/life"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type (
	// Sandbox is one sandbox as seen by the ledger and its place.
	Sandbox = life.Sandbox
	// Mode says whether a live sandbox runs or is paused.
	Mode = ledger.Mode
	// DestroyOptions modify a destroy.
	DestroyOptions = life.DestroyOptions
	// DestroyReport is the result of a destroy.
	DestroyReport = life.DestroyReport
	// LeaseView is one of several leases on a sandbox.
	LeaseView = life.LeaseView
	// Charge is one settled line.
	Charge = life.Charge
	// Run is one command in a sandbox, as far as it came.
	Run = life.Run
	// Prepared says where a request's images are ready.
	Prepared = life.Prepared
	// Outcome is how a run ended.
	Outcome = life.Outcome
	// SweepReport lists what a sweep ended, settled and found.
	SweepReport = life.SweepReport
	// SnapshotRequest asks for a checkpoint.
	SnapshotRequest = life.SnapshotRequest
	// SnapshotView is one kept checkpoint.
	SnapshotView = life.SnapshotView
	// Pool is one place of an extension.
	Pool = life.Pool
	// Dialer connects to one port inside a sandbox.
	Dialer = life.Dialer
	// Task is one command inside, with what is expected of it.
	Task = life.Task
	// TaskResult is what became of a Task.
	TaskResult = life.TaskResult
)

// The modes.
const (
	Running = ledger.Running
	Paused  = ledger.Paused
)

// The outcomes of a run.
const (
	RunExited      = life.RunExited
	RunTimeout     = life.RunTimeout
	RunInterrupted = life.RunInterrupted
	RunFailed      = life.RunFailed
)

// OnConflictReuse is a request's on_conflict; see [plan.OnConflictReuse].
const OnConflictReuse = plan.OnConflictReuse

// ErrOtherMode is wrapped by the error of a create whose sandbox is ready, but not in the mode that was asked for.
var ErrOtherMode = life.ErrOtherMode

// ErrLedgerUnusable is wrapped by the error of an operation that the ledger could not record.
var ErrLedgerUnusable = life.ErrLedgerUnusable

// Create creates a sandbox; see [life.Manager.Create].
func (e *Engine) Create(ctx context.Context, req Request, begun func(Sandbox), notify Notify) (Sandbox, error) {
	return e.life.Create(ctx, req, begun, notify)
}

// Run makes a sandbox, runs a command inside and ends it; see [life.Manager.Run].
func (e *Engine) Run(ctx context.Context, req Request, cmd ExecRequest, made life.Made, notify Notify) (Run, error) {
	return e.life.Run(ctx, req, cmd, made, notify)
}

// Prepare pulls and builds what a sandbox would run; see [life.Manager.Prepare].
func (e *Engine) Prepare(ctx context.Context, req Request, notify Notify) (Prepared, error) {
	return e.life.Prepare(ctx, req, notify)
}

// Here names a relative folder of a request by its place; see [life.Manager.Here].
func (e *Engine) Here(req Request) (Request, error) { return e.life.Here(req) }

// Recreate replaces a sandbox under its id; see [life.Manager.Recreate].
func (e *Engine) Recreate(ctx context.Context, rec Receipt, secrets map[string]Secret, notify Notify) (Sandbox, error) {
	return e.life.Recreate(ctx, rec, secrets, notify)
}

// Update applies an in-place change; see [life.Manager.Update].
func (e *Engine) Update(ctx context.Context, rec Receipt, req Request, notify Notify) (Sandbox, error) {
	return e.life.Update(ctx, rec, req, notify)
}

// ExtendTTL moves the deadline on behalf of others than the owner; see [life.Manager.ExtendTTL].
func (e *Engine) ExtendTTL(ctx context.Context, rec Receipt, ttl time.Duration) (Sandbox, error) {
	return e.life.ExtendTTL(ctx, rec, ttl)
}

// SetMode pauses or resumes a sandbox; see [life.Manager.SetMode].
func (e *Engine) SetMode(ctx context.Context, rec Receipt, mode Mode, notify Notify) (Sandbox, error) {
	return e.life.SetMode(ctx, rec, mode, notify)
}

// Destroy ends a sandbox and settles it; see [life.Manager.Destroy].
func (e *Engine) Destroy(ctx context.Context, rec Receipt, opts DestroyOptions) (DestroyReport, error) {
	return e.life.Destroy(ctx, rec, opts)
}

// Get observes one sandbox; see [life.Manager.Get].
func (e *Engine) Get(ctx context.Context, rec Receipt) (Sandbox, error) {
	return e.life.Get(ctx, rec)
}

// Lookup finds a sandbox in the ledger by id, or by account and name; see [life.Manager.Lookup].
func (e *Engine) Lookup(ctx context.Context, id ID, account, name string) (Sandbox, error) {
	return e.life.Lookup(ctx, id, account, name)
}

// List reads the account's sandboxes from the ledger, oldest first; all includes destroyed ones.
func (e *Engine) List(ctx context.Context, all bool) ([]Sandbox, error) {
	return e.life.List(ctx, all)
}

// Charges reads a sandbox's settled charges.
func (e *Engine) Charges(ctx context.Context, id ID) ([]Charge, error) {
	return e.life.Charges(ctx, id)
}

// Exec runs a command inside, with the toolchain's variables.
func (e *Engine) Exec(ctx context.Context, rec Receipt, req ExecRequest) (ExecResult, error) {
	return e.life.Exec(ctx, rec, req)
}

// Perform runs a task to its end; see [life.Manager.Perform].
func (e *Engine) Perform(ctx context.Context, rec Receipt, t Task) (TaskResult, error) {
	return e.life.Perform(ctx, rec, t)
}

// Logs streams the output of the sandbox's own processes; the caller closes it.
func (e *Engine) Logs(ctx context.Context, rec Receipt, req extensions.LogRequest) (io.ReadCloser, error) {
	return e.life.Logs(ctx, rec, req)
}

// Upload extracts a tar stream below dir inside.
func (e *Engine) Upload(ctx context.Context, rec Receipt, dir string, tar io.Reader) error {
	return e.life.Upload(ctx, rec, dir, tar)
}

// Download writes path inside as a tar stream.
func (e *Engine) Download(ctx context.Context, rec Receipt, path string, w io.Writer) error {
	return e.life.Download(ctx, rec, path, w)
}

// CopyIn copies a file or a folder into a sandbox; see [life.Manager.CopyIn].
func (e *Engine) CopyIn(ctx context.Context, rec Receipt, from, to string, notify Notify) error {
	return e.life.CopyIn(ctx, rec, from, to, notify)
}

// CopyOut copies a file or a folder out of a sandbox; see [life.Manager.CopyOut].
func (e *Engine) CopyOut(ctx context.Context, rec Receipt, from, to string, notify Notify) error {
	return e.life.CopyOut(ctx, rec, from, to, notify)
}

// Forward prepares connections to a port inside; see [life.Manager.Forward].
func (e *Engine) Forward(ctx context.Context, rec Receipt, service string, port int) (Dialer, error) {
	return e.life.Forward(ctx, rec, service, port)
}

// URL returns the address of a port inside; see [life.Manager.URL].
func (e *Engine) URL(ctx context.Context, rec Receipt, port int) (extensions.URL, error) {
	return e.life.URL(ctx, rec, port)
}

// SyncBack brings a mirrored workspace back now; see [life.Manager.SyncBack].
func (e *Engine) SyncBack(ctx context.Context, rec Receipt) (changed, conflicts []string, err error) {
	return e.life.SyncBack(ctx, rec)
}

// Snapshot keeps a checkpoint of a live sandbox; see [life.Manager.Snapshot].
func (e *Engine) Snapshot(ctx context.Context, rec Receipt, req SnapshotRequest) (SnapshotView, error) {
	return e.life.Snapshot(ctx, rec, req)
}

// CheckSnapshot refuses a snapshot in a plan and tells what is worth knowing of it; see [life.Manager.CheckSnapshot].
func (e *Engine) CheckSnapshot(ctx context.Context, sandbox ID, req SnapshotRequest) ([]Notice, error) {
	return e.life.CheckSnapshot(ctx, sandbox, req)
}

// Snapshots lists the account's snapshots in the ledger, oldest first; all includes deleted ones.
func (e *Engine) Snapshots(ctx context.Context, all bool) ([]SnapshotView, error) {
	return e.life.Snapshots(ctx, all)
}

// Retain changes how long a snapshot is kept; see [life.Manager.Retain].
func (e *Engine) Retain(ctx context.Context, id, retention string) (SnapshotView, error) {
	return e.life.Retain(ctx, id, retention)
}

// CheckRetention refuses a retention in a plan; see [life.Manager.CheckRetention].
func (e *Engine) CheckRetention(ctx context.Context, id, retention string) error {
	return e.life.CheckRetention(ctx, id, retention)
}

// GetSnapshot observes a snapshot; it needs neither a live sandbox nor the ledger. NotFound = proved absent.
func (e *Engine) GetSnapshot(ctx context.Context, s SnapshotView) (SnapshotView, error) {
	return e.life.GetSnapshot(ctx, s)
}

// LookupSnapshot finds a snapshot in the ledger by id.
func (e *Engine) LookupSnapshot(ctx context.Context, id string) (SnapshotView, error) {
	return e.life.LookupSnapshot(ctx, id)
}

// DeleteSnapshot removes a snapshot; see [life.Manager.DeleteSnapshot].
func (e *Engine) DeleteSnapshot(ctx context.Context, v SnapshotView, replaced bool) ([]Notice, error) {
	return e.life.DeleteSnapshot(ctx, v, replaced)
}

// Sweep ends overdue and failed sandboxes and settles those that ended by themselves; see [life.Manager.Sweep].
func (e *Engine) Sweep(ctx context.Context, dryRun bool, notify Notify) (SweepReport, error) {
	return e.life.Sweep(ctx, dryRun, notify)
}

// GivenUp returns err for a caller whose own context is ctx; see [life.GivenUp].
func GivenUp(ctx context.Context, err error) error { return life.GivenUp(ctx, err) }

type (
	// Actual is what a sandbox used so far, or in all once it has ended.
	Actual = life.Actual
	// MeasuredUse is what a place measures or expects.
	MeasuredUse = extensions.Usage
)

// Sources of an Actual.
const (
	ActualPlace   = life.ActualPlace
	ActualTime    = life.ActualTime
	ActualSettled = life.ActualSettled
)

// Actual reads what a sandbox uses; see [life.Manager.Actual].
func (e *Engine) Actual(ctx context.Context, id ID) (*Actual, error) {
	return e.life.Actual(ctx, id)
}
