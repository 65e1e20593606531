package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// PlanUpdate checks an in-place change of a live sandbox: a TTL its backend
// cannot give, a mode it does not have. It neither dials nor writes. An
// edited profile of the same version is a notice.
func (e *Engine) PlanUpdate(ctx context.Context, rec Receipt, old, req Request) ([]Notice, error) {
	e.heardOf(rec)
	if err := checkRequest(req); err != nil {
		return nil, err
	}
	// A plan may not know the secrets: they are write-only. Those it was made
	// with are as good for the comparison.
	l, row, known := e.rowFor(ctx, rec)
	was, err := requestOf(row)
	known = known && err == nil
	if known && req.SecretNames == nil && len(req.Secrets) == 0 {
		req.SecretNames = was.SecretNames
	}
	resolved, err := e.resolve(req)
	if err != nil {
		return nil, err
	}
	var notices []Notice
	p := &prepared{req: req, resolved: resolved}
	if known && rec.SpecHash != "" && rec.SpecHash != p.hashFor(rec.Extension) && old.Profile == req.Profile {
		notices = append(notices, Notice{Summary: "The profile has changed since this sandbox was made",
			Detail: resolved.ID + "@" + resolved.Version + " now resolves differently; the sandbox keeps what it was made with. Recreate it (terraform apply -replace) to use the new content, and raise the version of a profile when you change it."})
	}
	b, err := e.catalog.Named(rec.Extension)
	if err != nil {
		return notices, err
	}
	if err := RefuseUnbuilt(Request{DesiredMode: req.DesiredMode}); err != nil {
		return notices, err
	}
	ttl := time.Duration(resolved.Spec.TTL)
	if old.TTL == req.TTL {
		return notices, nil // the end stays where it is, whatever the profile says by now
	}
	if lifecycle.Overdue(e.book.Now(), rec.ExpiresAt) {
		return notices, extensions.AtField("ttl", extensions.Invalid("sandbox %s (%s) ended at %s, so its ttl cannot be changed any more",
			"make it anew (terraform apply -replace), or set on_expiry = \"replace\"", rec.ID, rec.Name, rec.ExpiresAt.UTC().Format(time.RFC3339)))
	}
	if before, err := e.resolve(old); (err != nil || before.Spec.TTL != resolved.Spec.TTL) && !b.Descriptor.Has(extensions.PowerExtend) {
		return notices, e.places.Unsupported(b.ID, extensions.PowerExtend)
	}
	if limit := route.MaxTTL(b.Capabilities); limit > 0 && ttl > limit {
		return notices, extensions.Invalid("a ttl of %s is above what %s allows (%s)", "shorten ttl", profile.FormatDuration(ttl), b.ID, profile.FormatDuration(limit))
	}
	if err := e.checkNewEnd(rec, ttl); err != nil || !known {
		return notices, err
	}
	if err := e.checkLaterCost(ctx, l, row, ttl, time.Duration(resolved.Spec.MaxTTL), req.MaxCost); err != nil {
		return notices, err
	}
	told, err := e.plannedExtension(ctx, l, row, ttl, req.Together)
	return append(notices, told...), err
}

// checkNewEnd refuses a ttl that would already be over.
func (e *Engine) checkNewEnd(rec Receipt, ttl time.Duration) error {
	end, err := lifecycle.ExpiresAt(rec.CreatedAt, ttl)
	if err != nil {
		return err
	}
	if !end.After(e.book.Now()) {
		return extensions.Invalid("a ttl of %s counts from %s and would already be over", "choose a longer ttl, or destroy the sandbox",
			profile.FormatDuration(ttl), rec.CreatedAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// Update applies an in-place change (ttl, desired mode, hosts) and records
// what is state only.
func (e *Engine) Update(ctx context.Context, rec Receipt, req Request, notify Notify) (Sandbox, error) {
	if err := checkRequest(req); err != nil {
		return Sandbox{}, err
	}
	resolved, err := e.resolve(req)
	if err != nil {
		return Sandbox{}, err
	}
	l, row, err := e.rowToChange(ctx, rec, notify)
	if err != nil {
		return Sandbox{}, err
	}
	ttl, limit := time.Duration(resolved.Spec.TTL), time.Duration(resolved.Spec.MaxTTL)
	if prev, err := requestOf(row); err == nil {
		if req.SecretNames == nil && len(req.Secrets) == 0 {
			req.SecretNames = prev.SecretNames
		}
		if req.TTL == prev.TTL { // the profile's default may have been edited since
			ttl = row.TTL
		}
	}
	if req.SecretNames == nil {
		req.SecretNames = slices.Sorted(maps.Keys(req.Secrets))
	}
	patch := ledger.Patch{Request: mustJSON(req)}
	e.rename(row, req.Hosts, &patch)
	if err := RefuseUnbuilt(Request{DesiredMode: req.DesiredMode}); err != nil {
		return Sandbox{}, err
	}
	patch.TTL = &ttl
	if err := e.checkLaterCost(ctx, l, row, ttl, limit, req.MaxCost); err != nil {
		return Sandbox{}, leftAlone(row, err)
	}
	return e.moveEnd(ctx, l, row, ttl, limit, patch, notify)
}

// ExtendTTL moves the end to created-at + ttl; see lifecycle.Retarget. It is
// for others than the owner: the ttl that the owner asked for stays recorded,
// so that the owner's next change does not take the extension back, and the
// owner's max_cost holds.
func (e *Engine) ExtendTTL(ctx context.Context, rec Receipt, ttl time.Duration) (Sandbox, error) {
	l, row, err := e.rowToChange(ctx, rec, nil)
	if err != nil {
		return Sandbox{}, err
	}
	if owner, err := requestOf(row); err == nil {
		if err := e.checkLaterCost(ctx, l, row, ttl, row.MaxTTL, owner.MaxCost); err != nil {
			return Sandbox{}, leftAlone(row, err)
		}
	}
	return e.moveEnd(ctx, l, row, ttl, row.MaxTTL, ledger.Patch{}, nil)
}

// rowToChange finds a live row for a change. A sandbox made with another
// machine's ledger has none here and cannot be changed from here.
func (e *Engine) rowToChange(ctx context.Context, rec Receipt, notify Notify) (ledger.Ledger, ledger.Sandbox, error) {
	e.heardOf(rec)
	l, row, err := e.found(ctx, rec.ID, notify)
	switch {
	case absent(err):
		return nil, row, e.unknownHere(rec.ID)
	case err != nil:
		return nil, row, leftAlone(rowOf(rec), err)
	case rec.Generation > 0 && row.Generation > rec.Generation:
		return nil, row, e.fenced(row)
	case !lifecycle.Usable(row.State) || lifecycle.Overdue(e.book.Now(), row.ExpiresAt):
		state := lifecycle.Shown(row.State)
		if lifecycle.Usable(row.State) {
			state = string(lifecycle.Expired)
		}
		return nil, row, extensions.Errorf(extensions.KindConflict, "sandbox %s (%s) is %s and cannot be changed", row.ID, row.Name, state).
			WithRemedy("recreate it")
	}
	return l, row, nil
}

// found looks up a row for a change, after recovery.
func (e *Engine) found(ctx context.Context, id ID, notify Notify) (l ledger.Ledger, row ledger.Sandbox, err error) {
	if l, err = e.recovered(ctx, notify); err == nil {
		row, err = l.Get(ctx, id)
	}
	return l, row, err
}

// unknownHere is the answer where only the ledger could tell.
func (e *Engine) unknownHere(id ID) error {
	return extensions.Errorf(extensions.KindNotFound, "the ledger %s does not know sandbox %s", e.book.URL(), id).
		WithRemedy("use the ledger it was made with (the provider's ledger or state_dir), or make the sandbox anew here")
}

// moveEnd retargets the end and applies patch in one operation.
func (e *Engine) moveEnd(ctx context.Context, l ledger.Ledger, row ledger.Sandbox, ttl, maxTTL time.Duration, patch ledger.Patch, notify Notify) (Sandbox, error) {
	end, err := lifecycle.Retarget(row.CreatedAt, row.ExpiresAt, row.TTL, ttl, maxTTL)
	if err != nil {
		return Sandbox{}, err
	}
	var b *place.Backend
	begun := ledger.NewNote("sandbox.changing", nil)
	if !end.Equal(row.ExpiresAt) {
		if !end.After(e.book.Now()) {
			return Sandbox{}, e.checkNewEnd(e.receipt(row), ttl)
		}
		if err := e.book.CheckClock(); err != nil {
			return Sandbox{}, err
		}
		if b, err = e.places.Open(ctx, placeOf(row)); err != nil {
			return Sandbox{}, err
		}
		begun = ledger.NewNote("sandbox.extending", map[string]any{"expires_at": end})
	}
	change := ledger.Change{Expect: ledger.Expect{States: usable}, Event: begun}
	about, err := e.reserveLater(ctx, l, row, end, &change)
	if err != nil {
		return Sandbox{}, leftAlone(row, err)
	}
	op, err := e.book.Begin(ctx, l, row, ledger.IntentExtend, change, notify)
	if err != nil {
		return Sandbox{}, about.unaffordable(leftAlone(row, err), fmt.Sprintf("sandbox %s (%s), which goes on until %s,", row.ID, row.Name, row.ExpiresAt.UTC().Format(time.RFC3339)), ttl)
	}
	defer op.Close()
	done := ledger.Change{Patch: patch, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Event: ledger.NewNote("sandbox.changed", nil)}
	if b != nil {
		if settled, err := e.carryEnd(ctx, b, op.Row, end); err != nil {
			reason := extensions.Clean(err.Error(), 500)
			failed := ledger.Change{Finish: &ledger.FinishIntent{Outcome: ledger.Failed, Reason: reason}, Event: ledger.NewNote("sandbox.extend-failed", map[string]any{"reason": reason})}
			if settled {
				failed.Reserve = e.settledEnd(ctx, l, op.Row, op.Row.ExpiresAt)
			}
			ferr := op.Apply(ctx, failed)
			return e.sealed(ctx, l, op.Row), errors.Join(err, ferr)
		}
		done.Patch.ExpiresAt = &end
		done.Event = ledger.NewNote("sandbox.extended", map[string]any{"expires_at": end})
		done.Reserve = e.settledEnd(ctx, l, op.Row, end)
	}
	err = op.Apply(ctx, done)
	return e.sealed(ctx, l, op.Row), err
}

// carryEnd moves the backend's deadline. After an ambiguous failure what the
// backend enforces now decides; if that cannot be seen, the old end is asked
// for again, so that it and the ledger agree. With an error, settled says that
// the old end holds for certain.
func (e *Engine) carryEnd(ctx context.Context, b *place.Backend, row ledger.Sandbox, end time.Time) (settled bool, err error) {
	if err := failpoint.Hit(ctx, pointExtending); err != nil {
		return true, err
	}
	err = b.Extend(ctx, row.Handle, end)
	switch extensions.KindOf(err) {
	case "":
		err = failpoint.Hit(ctx, pointExtended)
		if err == nil {
			return true, nil
		}
	case extensions.KindIndeterminate, extensions.KindTimeout, extensions.KindInternal:
	default:
		return true, err
	}
	sctx, cancel := settling(ctx)
	defer cancel()
	if o, lookErr := b.Look(sctx, row.Handle); lookErr == nil && o.Deadline.Sub(end).Abs() < time.Second {
		return true, nil
	}
	if back := b.Extend(sctx, row.Handle, row.ExpiresAt); back != nil && !absent(back) {
		return false, errors.Join(err, back)
	}
	return true, err
}
