package local

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/walls"
)

// Status implements extensions.Backend.
func (b *Backend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("status", "", err)
	}
	if handles == nil {
		return b.list()
	}
	list := make([]extensions.Observation, 0, len(handles))
	for _, h := range handles {
		list = append(list, b.status(h))
	}
	return list, nil
}

func (b *Backend) status(h extensions.Handle) extensions.Observation {
	bx, err := b.settings.resolve(h)
	var rec record
	if err == nil {
		rec, err = bx.read()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return extensions.Observation{ID: h.ID, Handle: h, Phase: extensions.PhaseAbsent}
	case err != nil:
		return extensions.Observation{ID: h.ID, Handle: h, Phase: extensions.PhaseUnreachable, Reason: err.Error(),
			Err: failed("status", h.ID, err)}
	}
	o := b.observe(bx, rec)
	if o.Phase == extensions.PhaseFailed && bx.lost(rec) {
		o.Phase = extensions.PhaseAbsent
	}
	return o
}

func (b *Backend) list() ([]extensions.Observation, error) {
	ids, err := b.settings.ids()
	if err != nil {
		return nil, failed("status", "", err)
	}
	list := []extensions.Observation{}
	for _, id := range ids {
		bx := b.settings.box(id)
		rec, err := bx.read()
		if errors.Is(err, fs.ErrNotExist) || err == nil && rec.Account != "" && rec.Account != b.settings.account {
			continue
		}
		rec.ID = id // even for one that cannot be read
		if o := b.status(b.settings.handle(rec)); o.Phase != extensions.PhaseAbsent {
			list = append(list, o)
		}
	}
	return list, nil
}

// observe says what became of a recorded sandbox: its init lives, ended by itself, went down with the
// machine, or was killed. One that lives without its folder has failed, not ended.
func (b *Backend) observe(bx box, rec record) extensions.Observation {
	o := extensions.Observation{ID: bx.id, Handle: b.settings.handle(rec), Generation: rec.Generation,
		StartedAt: rec.StartedAt, Deadline: bx.deadline(rec)}
	end, ended := bx.tombstone()
	switch {
	case ended && end.Reason == lease.ReasonExpired:
		o.Phase, o.EndedAt, o.Reason = extensions.PhaseExpired, end.EndedAt, "its deadline passed"
	case ended && end.Reason == lease.ReasonIdle:
		o.Phase, o.EndedAt, o.Idle = extensions.PhaseExpired, end.EndedAt, true
		o.Reason = "it was idle since " + end.IdleSince.Format(time.RFC3339)
	case ended && end.Reason == lease.ReasonExited:
		o.Phase, o.EndedAt, o.Reason = extensions.PhaseFailed, end.EndedAt, "its entrypoint ended with exit code "+itoa(end.Exit)
		if end.Exit == 0 {
			o.Phase = extensions.PhaseTerminated
		}
		return o
	case bx.adrift(rec):
		o.Phase, o.Reason = extensions.PhaseFailed, bx.driftsBecause(rec)
		return o
	case ended && end.Reason == lease.ReasonRemoved:
		o.Phase, o.EndedAt, o.Reason = extensions.PhaseFailed, end.EndedAt, "its folder was removed while it ran, which ended it"
	case rec.Init.alive() && rec.State == stateReady && end.Mode.Paused:
		o.Phase, o.Since = extensions.PhasePaused, end.Mode.Since
	case rec.Init.alive() && rec.State == stateReady:
		o.Phase, o.Since, o.IdleSince, o.Reachability = extensions.PhaseReady, end.Mode.Since, end.IdleSince, b.reach(bx, rec)
		o.Reason = strings.Join(rec.Unenforced, "; ")
	case rec.Init.alive() || rec.Init == nil && o.Deadline.After(time.Now()):
		o.Phase = extensions.PhaseProvisioning
	case rec.Init == nil:
		o.Phase, o.Reason = extensions.PhaseFailed, "its creation was never finished"
	case rec.Init.rebooted():
		o.Phase, o.EndedAt, o.Reason = extensions.PhaseFailed, bootTime(), "the machine was restarted"
	default:
		o.Phase, o.Reason = extensions.PhaseFailed, "its init was killed"
	}
	if o.Phase == extensions.PhaseFailed && !o.Deadline.IsZero() && !o.Deadline.After(time.Now()) {
		o.Phase = extensions.PhaseExpired
		if o.EndedAt.IsZero() || o.EndedAt.After(o.Deadline) {
			o.EndedAt = o.Deadline
		}
	}
	return o
}

func (b *Backend) reach(bx box, rec record) extensions.Reachability {
	r := extensions.Reachability{Host: b.settings.host}
	switch {
	case rec.Access == extensions.AccessNone:
	case rec.Mode == modeNone:
		r.WorkDir = bx.plainPath("workspace")
	default:
		r.WorkDir = walls.Workspace
	}
	return r
}

// Find implements extensions.Backend.
func (b *Backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	h, err := b.find(ctx, id)
	return h, failed("find", id, err)
}

// findWait is how long Find waits for another operation to end.
const findWait = 2 * time.Second

func (b *Backend) find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	if _, err := extensions.ParseID(string(id)); err != nil {
		return extensions.Handle{}, err
	}
	bx := b.settings.box(id)
	lock, err := bx.lock(ctx, findWait)
	if err == nil {
		defer func() { _ = lock.Close() }()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return extensions.Handle{}, err
	}
	rec, err := bx.read() // the folder may be gone, but not everything else
	if errors.Is(err, fs.ErrNotExist) {
		return extensions.Handle{}, extensions.Errorf(extensions.KindNotFound, "%s is not on this machine", id)
	}
	if err != nil {
		return extensions.Handle{}, err
	}
	return b.settings.handle(rec), nil
}
