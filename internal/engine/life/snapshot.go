package life

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// SnapshotRequest asks for a snapshot. It is stored, so that an import can restore every argument.
type SnapshotRequest struct {
	Name string `json:"name,omitempty"` // "" = its ID
	// Kind is one of those its place declares; "" = the place's default.
	Kind string `json:"kind,omitempty"`
	// Live permits a snapshot while everything runs on, so that its files may be of different moments.
	Live bool `json:"live,omitempty"`
	// AllowEnd permits a snapshot that ends its sandbox, where its place takes no other.
	AllowEnd bool `json:"allow_end,omitempty"`
	// Retention is how long it is kept, from its creation: "12h", "30d"; "" = until it is deleted.
	Retention string `json:"retention,omitempty"`
}

func (r SnapshotRequest) check(declared extensions.Snapshots) (retention time.Duration, err error) {
	if r.Name != "" {
		if err := profile.CheckName(r.Name); err != nil {
			return 0, err
		}
	}
	if err := (extensions.SnapshotSpec{Kind: extensions.SnapshotKind(r.Kind)}).CheckKind(declared); err != nil {
		return 0, extensions.AtField("kind", err)
	}
	if declared.EndsSource && !r.AllowEnd {
		return 0, extensions.AtField("allow_end", extensions.Invalid("a snapshot ends its sandbox there",
			"permit that by allow_end (--allow-end): the sandbox's work is in the snapshot then, and another sandbox can start from it"))
	}
	return ParseRetention(r.Retention)
}

// ParseRetention reads SnapshotRequest.Retention; "" is 0.
func ParseRetention(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := profile.ParseDuration(text)
	if err == nil && d <= 0 {
		err = extensions.Invalid("%q is not positive", "write how long to keep the snapshot, such as 30d, or leave it out",
			extensions.Clean(text, 40))
	}
	return d, extensions.AtField("retention", err)
}

// Snapshot keeps an image of a live sandbox. Whenever one may exist, the returned view has an ID, even
// with an error.
func (m *Manager) Snapshot(ctx context.Context, rec plan.Receipt, req SnapshotRequest) (SnapshotView, error) {
	l, row, err := m.rowToChange(ctx, rec, nil)
	if err != nil {
		return SnapshotView{}, cmp.Or(onlyCopy(ctx, l, row), err)
	}
	b, err := m.places.Open(ctx, placeOf(row))
	if err != nil {
		return SnapshotView{}, err
	}
	if err := b.Can(extensions.PowerSnapshot); err != nil {
		return SnapshotView{}, err
	}
	if b.Binding.Descriptor.Snapshots.StopsSource && row.Mode != ledger.Paused { // see goOn
		if err := m.book.CheckClock(); err != nil {
			return SnapshotView{}, err
		}
	}
	retention, err := req.check(b.Binding.Descriptor.Snapshots)
	if err != nil {
		return SnapshotView{}, err
	}
	if err := m.checkEnd(b.Binding, row.Payer, retention); err != nil {
		return SnapshotView{}, err
	}
	id, err := extensions.NewSnapshotID(m.rand)
	if err != nil {
		return SnapshotView{}, err
	}
	op, err := m.book.Prepare(context.WithoutCancel(ctx), l, ledger.IntentSnapshot, id, nil) // the id is new: nobody to wait for
	if err != nil {
		return SnapshotView{}, leftAlone(row, err)
	}
	defer op.Close()
	key := string(ledger.IntentSnapshot) + "/" + id
	s, err := l.BeginSnapshot(ctx, ledger.BeginSnapshot{Key: key, Holder: op.Holder, ID: id, Account: row.Account, Name: cmp.Or(req.Name, id),
		SandboxID: row.ID, Extension: row.Extension, Host: row.Host, HostRef: row.HostRef, Identity: b.Identity(), Arch: m.archAt(ctx, l, b, row),
		Retention: retention, Request: mustJSON(req), CreatedAt: m.book.Now()})
	if err != nil {
		return SnapshotView{}, leftAlone(row, err)
	}
	if b.Binding.Descriptor.Snapshots.EndsSource {
		return m.lastSnapshot(ctx, b, row, pending{op: op, s: s}, req)
	}
	if err := failpoint.Hit(ctx, pointSnapshotBegun); err != nil {
		return m.snapshotFailed(ctx, l, b, s, op.Holder, nil, err)
	}
	made, told, err := m.takeSnapshot(ctx, l, b, row, s, req)
	if err != nil {
		return m.snapshotFailed(ctx, l, b, s, op.Holder, told, err)
	}
	kept, err := m.keepSnapshot(ctx, b, pending{op: op, s: s}, made, &ledger.FinishIntent{Outcome: ledger.Confirmed})
	if err != nil {
		s.Handle = made.Handle
		return m.snapshotFailed(ctx, l, b, s, op.Holder, told, notRecorded(err))
	}
	out := snapshotView(kept)
	out.Notices = told
	return out, failpoint.Hit(ctx, pointSnapshotKept)
}

// pending is a snapshot whose operation this run has begun.
type pending struct {
	op *book.Operation
	s  ledger.Snapshot
}

// change is a step of the snapshot, under its fence.
func (p pending) change(step string) ledger.SnapshotChange {
	return ledger.SnapshotChange{ID: p.s.ID, Key: p.op.Key + step, Expect: ledger.SnapshotExpect{Fence: p.s.Fence, Holder: p.op.Holder}}
}

// keepSnapshot records a snapshot that was taken. finish = nil leaves its operation open.
func (m *Manager) keepSnapshot(ctx context.Context, b *place.Backend, p pending, made extensions.Snapshot,
	finish *ledger.FinishIntent) (ledger.Snapshot, error) {
	opened, err := m.keeping(b, p.s, made)
	if err != nil {
		return p.s, err
	}
	kind := string(made.Kind)
	c := p.change("/ready")
	c.To, c.Meter.Open, c.Finish = ledger.SnapshotReady, opened, finish
	c.Patch = ledger.SnapshotPatch{Handle: &made.Handle, Kind: &kind, SizeBytes: &made.SizeBytes, Digest: &made.Digest,
		LapsesAt: &made.ExpiresAt}
	return applySnapshot(ctx, p.op.Ledger, c)
}

// takeSnapshot asks the place, and lets a sandbox go on that it stopped, whether or not it failed.
func (m *Manager) takeSnapshot(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox, s ledger.Snapshot,
	req SnapshotRequest) (made extensions.Snapshot, told []notice.Notice, err error) {
	err = book.Guarded(ctx, l, func(ctx context.Context) (err error) {
		made, err = b.Snapshot(ctx, row.Handle, extensions.SnapshotSpec{ID: s.ID, Name: s.Name, Account: s.Account, CreatedAt: s.CreatedAt,
			Kind: extensions.SnapshotKind(req.Kind), Live: req.Live})
		return err
	})
	if err == nil {
		err = failpoint.Hit(ctx, pointSnapshotMade)
	}
	return made, m.goOn(ctx, l, b, row, true), err
}

// archAt returns the architecture of a sandbox's place, "" if nobody can tell. What runs sandboxes for this machine need not be
// of its kind, and nobody records of which it is, so it is asked.
func (m *Manager) archAt(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox) string {
	at, _ := b.Binding.Descriptor.PlaceOf(hostOf(row))
	if at == extensions.PlaceMachine && b.Binding.Descriptor.Native {
		return here.Arch
	}
	found, _ := m.recordedFacts(ctx, placeOf(row))
	if found == nil && at == extensions.PlaceMachine {
		found = m.probe(ctx, placeOf(row)).facts
	}
	if found != nil && len(found.Narrowing.Arch) == 1 {
		return found.Narrowing.Arch[0]
	}
	if host, err := l.Host(ctx, row.Account, row.Host); err == nil && host.Ref == row.HostRef && at == extensions.PlaceHost {
		return host.Facts.Arch
	}
	if archs := b.Binding.Capabilities.Arch; len(archs) == 1 && archs[0] != "*" {
		return archs[0]
	}
	return ""
}

// goOn resumes a sandbox that ran until a snapshot stopped it. told says that it stays paused: no later run resumes it.
func (m *Manager) goOn(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox, last bool) (told []notice.Notice) {
	err := m.resumeStopped(ctx, l, b, row, last)
	if err == nil {
		return nil
	}
	return []notice.Notice{{Summary: "Its sandbox does not go on",
		Detail: fmt.Sprintf("The snapshot stopped sandbox %s, which could not be resumed: %s. What to do: run `sandboxer sandbox resume %[1]s`.",
			row.ID, err)}}
}

// resumeStopped lets the meter count the pause. A silent place is left to a later run: unless last, one comes back to this
// snapshot; else an open change of mode makes the next one look.
func (m *Manager) resumeStopped(ctx context.Context, l *ledger.Ledger, b *place.Backend, row ledger.Sandbox, last bool) error {
	if !b.Binding.Descriptor.Snapshots.StopsSource || row.Mode == ledger.Paused || !lifecycle.Usable(row.State) {
		return nil
	}
	ctx, cancel := settling(ctx)
	defer cancel()
	o, silent := b.Look(ctx, row.Handle)
	if silent != nil && !last || silent == nil && o.Phase != extensions.PhasePaused {
		return nil
	}
	op, err := m.book.Begin(ctx, l, row, ledger.IntentMode,
		ledger.Change{Expect: ledger.Expect{States: usable}, Event: ledger.NewNote("sandbox.pausing", map[string]any{"why": "snapshot"})}, nil)
	if err != nil {
		return errors.Join(silent, err)
	}
	done := ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Event: ledger.NewNote("sandbox.paused", nil)}
	if silent != nil {
		done.Finish = &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reasonOf(silent)}
		done.Event = ledger.NewNote("sandbox.mode-failed", map[string]any{"reason": reasonOf(silent)})
		m.leaveOpen(&done)
	}
	if err = m.seenMode(ctx, op, o, m.book.Now(), &done); err == nil {
		err = op.Apply(ctx, done)
	}
	row = op.Row
	op.Close()
	if err = errors.Join(silent, err); err == nil {
		_, err = m.setMode(ctx, l, row, ledger.Running, row.ExpiresAt, nil)
	}
	return err
}

// applySnapshot records one step even if the caller gives up; its key makes it happen once.
func applySnapshot(ctx context.Context, l *ledger.Ledger, c ledger.SnapshotChange) (ledger.Snapshot, error) {
	s, err := l.ApplySnapshot(context.WithoutCancel(ctx), c)
	if extensions.IsKind(err, extensions.KindIndeterminate) {
		s, err = l.ApplySnapshot(context.WithoutCancel(ctx), c)
	}
	return s, err
}

// snapshotFailed removes what a failed snapshot may have left.
func (m *Manager) snapshotFailed(ctx context.Context, l *ledger.Ledger, b *place.Backend, s ledger.Snapshot, holder ledger.HolderID,
	told []notice.Notice, cause error) (SnapshotView, error) {
	sctx, cancel := settling(ctx)
	defer cancel()
	err := b.RemoveSnapshot(sctx, s.ID, s.Handle)
	to, out := ledger.SnapshotDeleted, SnapshotView{}
	if err != nil {
		to, out = ledger.SnapshotFailed, snapshotView(s)
	} else {
		cause = lookedFor(cause)
	}
	reason := extensions.Clean(cause.Error(), 500)
	_, lerr := applySnapshot(sctx, l, ledger.SnapshotChange{ID: s.ID, Key: string(ledger.IntentSnapshot) + "/" + s.ID + "/failed",
		Expect: ledger.SnapshotExpect{Fence: s.Fence, Holder: holder}, To: to, Patch: ledger.SnapshotPatch{Reason: &reason},
		Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reason}})
	if lerr != nil {
		out = snapshotView(s) // the ledger still has it as under way
	}
	out.Notices = told
	return out, errors.Join(cause, err, lerr)
}

// lookedFor is why a snapshot failed of which a look-up found nothing: so its outcome is known.
func lookedFor(cause error) error {
	if !extensions.IsKind(cause, extensions.KindIndeterminate) {
		return cause
	}
	return extensions.Errorf(extensions.KindUnavailable, "%w; nothing was found of it afterwards", cause).WithRemedy("take it again")
}

// GetSnapshot observes a snapshot; it needs no live sandbox and no ledger. NotFound: proved absent.
func (m *Manager) GetSnapshot(ctx context.Context, s SnapshotView) (SnapshotView, error) {
	b, h, err := m.snapshotPlace(ctx, s)
	if err != nil {
		return s, err
	}
	if h.ID == "" {
		if h.SnapshotHandle, err = b.FindSnapshot(ctx, s.ID); err != nil {
			return s, err
		}
	}
	got, err := b.StatSnapshot(ctx, h.SnapshotHandle)
	if err != nil {
		return s, err
	}
	s.Handle, s.Kind, s.SizeBytes, s.Digest = encodeSnapshot(got.Handle, h.Identity), string(got.Kind), got.SizeBytes, got.Digest
	kept, err := ParseRetention(s.Retention)
	s.ExpiresAt = ledger.Snapshot{CreatedAt: s.CreatedAt, Retention: kept, LapsesAt: got.ExpiresAt}.ExpiresAt()
	return s, err
}

func (m *Manager) snapshotPlace(ctx context.Context, s SnapshotView) (*place.Backend, snapshotPointer, error) {
	var h snapshotPointer
	if !extensions.ValidSnapshotID(s.ID) {
		return nil, h, extensions.Invalid("%q is not a snapshot ID", "use the ID of a sandboxer_snapshot", extensions.Clean(s.ID, 80))
	}
	if s.Handle != "" {
		if err := json.Unmarshal([]byte(s.Handle), &h); err != nil {
			return nil, h, extensions.Invalid("the handle of snapshot %s cannot be read: %w", "import the snapshot by its ID", s.ID, err)
		}
	}
	b, err := m.places.Open(ctx, place.Address{Binding: s.Extension, Account: s.Account, Host: s.Host, Identity: h.Identity})
	if err != nil {
		return nil, h, err
	}
	return b, h, b.Can(extensions.PowerSnapshot)
}

// LookupSnapshot finds a snapshot in the ledger by id.
func (m *Manager) LookupSnapshot(ctx context.Context, id string) (SnapshotView, error) {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return SnapshotView{}, err
	}
	s, err := l.GetSnapshot(ctx, id)
	what := "does not know snapshot " + extensions.Clean(id, 80)
	if err == nil && s.State == ledger.SnapshotDeleted {
		err = extensions.Errorf(extensions.KindNotFound, "deleted")
		what = "says that snapshot " + s.ID + " was deleted at " + s.EndedAt.UTC().Format(time.RFC3339)
	}
	if absent(err) {
		return SnapshotView{}, extensions.Errorf(extensions.KindNotFound, "the ledger %s %s", l.URL(), what).
			WithRemedy("check the ID and the provider's ledger, state_dir and account")
	}
	if err != nil {
		return SnapshotView{}, err
	}
	return snapshotView(s), nil
}
