package byname_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// one is a sandbox of the vendor's.
type one struct {
	id         extensions.ID
	account    string
	ref        string
	generation int64
	phase      extensions.Phase
	ended      string
	leaving    bool
}

// vendor has one sandbox of each name.
type vendor struct {
	named  map[extensions.ID]*one // by the id that the name is made of
	ends   []string               // what it was told to end
	create func() error
	fails  error // of a look
	slow   int   // looks that still show what was ended
}

const ours = "acme/web"

func handle(id extensions.ID, ref string) extensions.Handle {
	return extensions.Handle{Extension: "acme", Version: 1, ID: id, Ref: ref}
}

func (v *vendor) place() *byname.Place[*one] {
	return &byname.Place[*one]{Vendor: "Acme", Handle: handle,
		Look: func(_ context.Context, h extensions.Handle) (*one, error) {
			if v.fails != nil {
				return nil, v.fails
			}
			if s := v.named[h.ID]; s != nil && (h.Ref == "" || h.Ref == s.ref) {
				if s.leaving {
					if v.slow--; v.slow < 0 {
						delete(v.named, h.ID)
					}
				}
				return s, nil
			}
			return nil, extensions.Errorf(extensions.KindNotFound, "none")
		},
		List: func(context.Context) ([]*one, error) {
			all := slices.Collect(maps.Values(v.named))
			return append(all, all...), v.fails
		},
		Tell: func(s *one) byname.Told {
			t := byname.Told{Called: "box " + s.ref, State: "fine", Ended: s.ended, Leaving: s.leaving}
			if s.account == ours {
				t.ID, t.Generation = s.id, s.generation
			}
			t.Phase, t.Handle = s.phase, handle(t.ID, s.ref)
			return t
		},
		Make: func(_ context.Context, spec extensions.Spec) (func(context.Context) (string, error), error) {
			return func(context.Context) (string, error) {
				err := v.create()
				if s := v.named[spec.ID]; s != nil {
					return s.ref, err
				}
				return "new", err
			}, nil
		},
		Refused: func(_ extensions.Spec, err error) error {
			return extensions.Errorf(extensions.KindOf(err), "nothing is there: %w", err)
		},
		End: func(_ context.Context, t byname.Told) error {
			v.ends = append(v.ends, t.Handle.Ref)
			for _, s := range v.named {
				s.leaving = s.leaving || s.ref == t.Handle.Ref
			}
			return nil
		},
		Gone: ready.Wait{Interval: time.Millisecond, Timeout: 50 * time.Millisecond}}
}

func newID(t *testing.T) extensions.ID {
	t.Helper()
	id, err := extensions.NewID(nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// What has the name decides what a create was that failed: what the place said of it does not.
func TestTheNameDecidesWhatACreateLeft(t *testing.T) {
	t.Parallel()
	fail := func(kind extensions.Kind) error { return extensions.Errorf(kind, "refused") }
	mine, theirs := one{account: ours, ref: "a", generation: 2}, one{account: "other", ref: "b", generation: 2}
	older, leaving, over := mine, mine, mine
	older.generation, leaving.leaving, over.ended = 1, true, "its time was over"
	for name, c := range map[string]struct {
		create error
		there  *one
		look   error
		kind   extensions.Kind // "" = it is made or adopted
		left   bool            // a handle remains, or is returned
		ref    string
	}{
		"made":                        {nil, nil, nil, "", true, "new"},
		"nothing was sent":            {fail(extensions.KindUnreachable), &mine, nil, extensions.KindUnreachable, false, ""},
		"a lost answer":               {fail(extensions.KindIndeterminate), nil, nil, extensions.KindIndeterminate, true, ""},
		"its time was over":           {fail(extensions.KindTimeout), nil, nil, extensions.KindTimeout, true, ""},
		"refused, and nothing has it": {fail(extensions.KindExhausted), nil, nil, extensions.KindExhausted, false, ""},
		"refused, and it exists":      {fail(extensions.KindInvalid), &mine, nil, extensions.KindIndeterminate, true, ""},
		"refused, and nobody tells": {fail(extensions.KindInvalid), nil, fail(extensions.KindUnavailable), extensions.KindIndeterminate,
			true, ""},
		"not let in, and never": {fail(extensions.KindUnauthorized), nil, fail(extensions.KindUnauthorized), extensions.KindUnauthorized,
			false, ""},
		"not let in, and it exists":       {fail(extensions.KindUnauthorized), &mine, nil, extensions.KindIndeterminate, true, ""},
		"taken, by an earlier call":       {fail(extensions.KindConflict), &mine, nil, "", true, "a"},
		"taken, by another generation":    {fail(extensions.KindConflict), &older, nil, extensions.KindConflict, true, "a"},
		"taken, by another's":             {fail(extensions.KindConflict), &theirs, nil, extensions.KindConflict, false, ""},
		"taken, by one on its way out":    {fail(extensions.KindConflict), &leaving, nil, extensions.KindUnavailable, true, "a"},
		"taken, by one that ended since":  {fail(extensions.KindConflict), &over, nil, extensions.KindConflict, false, ""},
		"taken, and nothing has it since": {fail(extensions.KindConflict), nil, nil, extensions.KindConflict, false, ""},
	} {
		spec := extensions.Spec{ID: newID(t), Generation: 2}
		v := &vendor{named: map[extensions.ID]*one{}, create: func() error { return c.create }, fails: c.look, slow: 1}
		if c.there != nil {
			there := *c.there
			there.id, v.named[spec.ID] = spec.ID, &there
		}
		h, o, err := v.place().Provision(t.Context(), spec)
		if extensions.KindOf(err) != c.kind || h.IsZero() == c.left || h.Ref != c.ref || c.left && h.ID != spec.ID {
			t.Errorf("%s: %s, %v", name, h.Encode(), err)
		}
		if err == nil && (o.Phase != extensions.PhaseProvisioning || o.Generation != 2 || o.Handle.Encode() != h.Encode()) {
			t.Errorf("%s: observed %+v", name, o)
		}
		if len(v.ends) > 0 {
			t.Errorf("%s: a create ended %v", name, v.ends)
		}
	}
}

// A create that is refused before it is sent leaves what an earlier call of its id made.
func TestARefusedCreateDoesNotForgetWhatAnEarlierOneMade(t *testing.T) {
	t.Parallel()
	mine := one{account: ours, ref: "a", generation: 2}
	theirs, over := mine, mine
	theirs.account, over.ended = "other", "its time was over"
	for name, c := range map[string]struct {
		there *one
		look  error
		ref   string
	}{
		"it is there":        {&mine, nil, "a"},
		"nothing is there":   {nil, nil, ""},
		"it has ended":       {&over, nil, ""},
		"another's is there": {&theirs, nil, ""},
		"nobody tells":       {nil, extensions.Errorf(extensions.KindUnavailable, "busy"), ""},
	} {
		spec := extensions.Spec{ID: newID(t), Generation: 2}
		v := &vendor{named: map[extensions.ID]*one{}, fails: c.look, slow: 1}
		if c.there != nil {
			there := *c.there
			there.id, v.named[spec.ID] = spec.ID, &there
		}
		p := v.place()
		p.Make = func(context.Context, extensions.Spec) (func(context.Context) (string, error), error) {
			return nil, extensions.Errorf(extensions.KindUnsupported, "its image is gone")
		}
		h, _, err := p.Provision(t.Context(), spec)
		if !extensions.IsKind(err, extensions.KindUnsupported) || h.Ref != c.ref || h.IsZero() != (c.ref == "") {
			t.Errorf("%s: %s, %v", name, h.Encode(), err)
		}
	}
}

// What a create makes beside its sandbox is ended once nothing has its name, and not before; if it cannot be, a handle is left.
func TestWhatACreateMadeBesideIsCleared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refused extensions.Kind
		there   bool
		fails   error
		cleared int
		left    bool
	}{
		"nothing has the name":  {extensions.KindExhausted, false, nil, 1, false},
		"it cannot be cleared":  {extensions.KindExhausted, false, extensions.Errorf(extensions.KindUnavailable, "busy"), 1, true},
		"the sandbox is there":  {extensions.KindConflict, true, nil, 0, true},
		"nobody knows":          {extensions.KindIndeterminate, false, nil, 0, true},
		"it was made by a call": {"", true, nil, 0, true},
	} {
		spec, cleared := extensions.Spec{ID: newID(t), Generation: 1}, 0
		v := &vendor{named: map[extensions.ID]*one{}, create: func() error {
			if c.refused == "" {
				return nil
			}
			return extensions.Errorf(c.refused, "refused")
		}}
		if c.there {
			v.named[spec.ID] = &one{id: spec.ID, account: ours, ref: "a", generation: 1}
		}
		p := v.place()
		p.Clear = func(_ context.Context, of extensions.Spec) error {
			if of.ID == spec.ID {
				cleared++
			}
			return c.fails
		}
		if h, _, err := p.Provision(t.Context(), spec); cleared != c.cleared || h.IsZero() == c.left {
			t.Errorf("%s: cleared %d times, %s, %v", name, cleared, h.Encode(), err)
		}
	}
}

// Only what carries the handle's id and account is ended, and its end is awaited.
func TestOnlyOursIsEndedAndItsAbsenceConfirmed(t *testing.T) {
	t.Parallel()
	id, other := newID(t), newID(t)
	mine := one{id: id, account: ours, ref: "a", phase: extensions.PhaseReady}
	theirs, swapped, over, leaving := mine, mine, mine, mine
	theirs.account, swapped.id, over.ended, leaving.leaving = "other", other, "it was terminated", true
	for name, c := range map[string]struct {
		there *one
		slow  int
		kind  extensions.Kind
		gone  bool
		ends  int
	}{
		"ours":                 {&mine, 2, "", false, 1},
		"nothing":              {nil, 0, "", true, 0},
		"another account's":    {&theirs, 0, extensions.KindConflict, false, 0},
		"with another id":      {&swapped, 0, extensions.KindConflict, false, 0},
		"one that has ended":   {&over, 0, "", true, 0},
		"one on its way out":   {&leaving, 2, "", false, 0},
		"one that stays there": {&mine, 1 << 20, extensions.KindUnavailable, false, 1},
	} {
		v := &vendor{named: map[extensions.ID]*one{}, slow: c.slow}
		if c.there != nil {
			there := *c.there
			v.named[id] = &there
		}
		r, err := v.place().Teardown(t.Context(), handle(id, ""))
		if extensions.KindOf(err) != c.kind || r.AlreadyGone != c.gone || len(v.ends) != c.ends {
			t.Errorf("%s: %+v, %v, ended %v", name, r, err, v.ends)
		}
		if err == nil && !c.gone && (len(v.named) > 0 || len(r.Removed) != 1) {
			t.Errorf("%s: %d are left, %v", name, len(v.named), r.Removed)
		}
	}
}

// A sandbox that is not what was asked for ends although its caller has left; if it cannot be ended, that is told.
func TestWhatIsRejectedEnds(t *testing.T) {
	t.Parallel()
	id := newID(t)
	why := extensions.Errorf(extensions.KindUnsupported, "it is in the wrong place").At("region")
	left, cancel := context.WithCancel(t.Context())
	cancel()
	v := &vendor{named: map[extensions.ID]*one{id: {id: id, account: ours, ref: "a"}}}
	if err := v.place().Reject(left, handle(id, "a"), why); extensions.FieldOf(err) != "region" || len(v.named) > 0 {
		t.Errorf("%v, %d are left", err, len(v.named))
	}
	v = &vendor{fails: extensions.Errorf(extensions.KindUnavailable, "busy")}
	err := v.place().Reject(left, handle(id, "a"), why)
	if !extensions.IsKind(err, extensions.KindUnsupported) || extensions.FieldOf(err) != "region" ||
		err.Error() != "it is in the wrong place; it was not ended: busy" {
		t.Errorf("%v", err)
	}
}

// A list shows each of ours that lives once; a look at another's says that ours is not there.
func TestStatusShowsOursAlone(t *testing.T) {
	t.Parallel()
	a, b, c := newID(t), newID(t), newID(t)
	v := &vendor{named: map[extensions.ID]*one{a: {id: a, account: ours, ref: "a", phase: extensions.PhaseReady},
		b: {id: b, account: "other", ref: "b", phase: extensions.PhaseReady}, c: {id: c, account: ours, ref: "c", ended: "its time was over"}}}
	p := v.place()
	all, err := p.Status(t.Context(), nil)
	if err != nil || len(all) != 1 || all[0].ID != a {
		t.Errorf("%+v, %v", all, err)
	}
	some, err := p.Status(t.Context(), []extensions.Handle{handle(a, "a"), handle(b, "b")})
	if err != nil || some[0].Phase != extensions.PhaseReady || some[1].Phase != extensions.PhaseAbsent {
		t.Errorf("%+v, %v", some, err)
	}
	for id, kind := range map[extensions.ID]extensions.Kind{a: "", b: extensions.KindConflict, c: extensions.KindNotFound,
		newID(t): extensions.KindNotFound} {
		if h, err := p.Find(t.Context(), id); extensions.KindOf(err) != kind || (h.Ref == "a") != (kind == "") {
			t.Errorf("find: %s, %v; want %q", h.Encode(), err, kind)
		}
	}
	v.fails = extensions.Errorf(extensions.KindUnavailable, "busy")
	if all, err := p.Status(t.Context(), nil); !extensions.IsKind(err, extensions.KindUnavailable) || all != nil {
		t.Errorf("half a list: %+v, %v", all, err)
	}
}
