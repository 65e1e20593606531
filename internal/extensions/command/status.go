package command

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Status implements extensions.Backend: one run of the program.
func (b *backend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	var out []extensions.Observation
	var err error
	switch {
	case handles == nil:
		out, err = b.everything(ctx)
	case len(handles) > 0:
		out, err = b.status(ctx, handles)
	}
	return out, failed("status", "", err)
}

func (b *backend) status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	out := make([]extensions.Observation, len(handles))
	asked, of := []pointer{}, []int{}
	for i, h := range handles {
		out[i] = extensions.Observation{ID: h.ID, Handle: h, Phase: extensions.PhaseUnreachable}
		h, _, err := b.whole(ctx, h)
		switch {
		case extensions.IsKind(err, extensions.KindNotFound):
			out[i].Phase = extensions.PhaseAbsent
		case err != nil:
			out[i].Reason, out[i].Err = "the program did not answer", failed("status", h.ID, err)
		default:
			asked, of = append(asked, pointer{ID: h.ID, Ref: h.Ref}), append(of, i)
		}
	}
	if len(asked) == 0 {
		return out, ctx.Err()
	}
	a, err := b.call(ctx, request{Verb: verbStatus, Sandboxes: &asked})
	if err != nil {
		return nil, err
	}
	if n := len(*a.Sandboxes); n != len(asked) {
		return nil, lost(verbStatus, unknown("%d sandboxes were asked for, and there are %d in it", len(asked), n), "")
	}
	current := b.current()
	for n, s := range *a.Sandboxes {
		o := &out[of[n]]
		if s.Phase == extensions.PhaseAbsent {
			o.Phase = extensions.PhaseAbsent
			continue
		}
		if err := s.check(b, asked[n].ID); err != nil {
			o.Reason, o.Err = "the program's answer is no help", failed("status", o.ID, lost(verbStatus, err, ""))
			continue
		}
		*o = s.observe(current)
	}
	return out, nil
}

// current is what the program is now, to compare with; "" if that cannot be told.
func (b *backend) current() string {
	sum, err := b.digest()
	if err != nil {
		return ""
	}
	return sum
}

func (b *backend) everything(ctx context.Context) ([]extensions.Observation, error) {
	a, err := b.call(ctx, request{Verb: verbStatus})
	if err != nil {
		return nil, err
	}
	current := b.current()
	seen := map[extensions.ID]bool{}
	out := make([]extensions.Observation, 0, len(*a.Sandboxes))
	for _, s := range *a.Sandboxes {
		if err := s.check(b, ""); err != nil {
			return nil, lost(verbStatus, err, "")
		}
		o := s.observe(current)
		if seen[o.ID] {
			return nil, lost(verbStatus, unknown("%s is in it twice", o.ID), "")
		}
		seen[o.ID] = true
		out = append(out, o)
	}
	return out, nil
}

// Find implements extensions.Backend.
func (b *backend) Find(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
	h, err := b.find(ctx, id)
	return h, failed("find", id, err)
}

func (b *backend) find(ctx context.Context, id extensions.ID) (h extensions.Handle, err error) {
	if _, err := extensions.ParseID(string(id)); err != nil {
		return h, err
	}
	if !b.desc.Find.Recoverable() {
		return h, extensions.Errorf(extensions.KindIndeterminate, "the program cannot look a sandbox up by its ID")
	}
	a, err := b.call(ctx, request{Verb: verbFind, ID: id})
	if err != nil {
		return h, err
	}
	if len(*a.Sandboxes) == 0 {
		if b.desc.Find.Strength == extensions.FindStrong {
			return h, extensions.Errorf(extensions.KindNotFound, "there is no such sandbox")
		}
		return h, extensions.Errorf(extensions.KindIndeterminate, "the program does not see it; a new sandbox can be missing for %s",
			b.desc.Find.Settle)
	}
	s, err := one(b, verbFind, a, id)
	if err != nil {
		return h, err
	}
	return s.handle(), nil
}
