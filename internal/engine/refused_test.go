package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// A place that refuses every connection was sent nothing: where it is the only
// one, nothing is left of the create, and its name is free.
func TestARefusedConnectionLeavesNothing(t *testing.T) {
	t.Parallel()
	takesLong(t)
	w := newTwo(t)
	w.script(saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
	req := engine.Request{Profile: "profile.first", Name: "one"}
	s, err := w.Create(t.Context(), req, nil, nil)
	if !extensions.IsKind(err, extensions.KindUnreachable) || s.ID != "" || strings.Contains(err.Error(), "may exist") ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%q is told: %s: %v", s.ID, extensions.KindOf(err), err)
	}
	w.script()
	if s, err = w.Create(t.Context(), req, nil, nil); err != nil || s.Extension != "ext.first" || len(w.holds(w.vendor)) != 1 {
		t.Errorf("made again at %q: %s, the vendor holds %d", s.Extension, told(err), len(w.holds(w.vendor)))
	}
	w.clean()
}

// A connection that is refused halfway is no refused create.
func TestAConnectionRefusedHalfwayIsNoRefusedCreate(t *testing.T) {
	t.Parallel()
	takesLong(t)
	w := newTwo(t)
	w.script(saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoUnreachable}, saasstub.Rule{Op: vendor.OpGet, Do: vendor.DoUnreachable},
		saasstub.Rule{Op: vendor.OpUsage, Do: vendor.DoUnreachable})
	s, err := w.Create(t.Context(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
	if err == nil || s.ID == "" || len(w.holds(w.vendor)) != 1 || len(w.holds(w.dear)) != 0 {
		t.Errorf("%q is told, the first holds %d, the second %d: %v", s.ID, len(w.holds(w.vendor)), len(w.holds(w.dear)), err)
	}
	w.script()
	if _, err := w.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil || len(w.holds(w.vendor)) != 0 {
		t.Errorf("destroy: %s, %d are left", told(err), len(w.holds(w.vendor)))
	}
	w.clean()
}

// What was sent and lost may still arrive: that the next connection is refused
// proves nothing of the one before.
func TestALostRequestStaysInDoubtWhereTheNextIsRefused(t *testing.T) {
	t.Parallel()
	takesLong(t)
	refused := extensions.Errorf(extensions.KindUnreachable, "connection refused")
	var creates, finds atomic.Int64
	// The first request is lost on its way: a look-up right after it sees nothing,
	// and from then on every connection is refused.
	cut := &hooked{handler: "cut", does: func(c *calls, _ extensions.Config) {
		c.Provision = func(context.Context, extensions.Spec) (extensions.Handle, extensions.Observation, error) {
			if creates.Add(1) == 1 {
				return extensions.Handle{}, extensions.Observation{}, extensions.Errorf(extensions.KindIndeterminate, "the connection broke")
			}
			return extensions.Handle{}, extensions.Observation{}, refused
		}
		c.Find = func(context.Context, extensions.ID) (extensions.Handle, error) {
			if finds.Add(1) == 1 {
				return extensions.Handle{}, extensions.Errorf(extensions.KindNotFound, "nothing has this id")
			}
			return extensions.Handle{}, refused
		}
	}}
	b := newBench(t, having(cut), onFiles(map[string]string{
		"extensions/ext.cut.yaml":    "id: ext.cut\nhandler: cut\npriority: 10\nconfig: { dir: \"$VENDOR\" }\ncost: { per_hour: \"1.00 USD\" }\n",
		"extensions/ext.second.yaml": bound("ext.second", "$DEAR", "cost: { per_hour: \"1.00 USD\" }\n"),
		"profiles/profile.cut.yaml":  "id: profile.cut\nversion: \"1.0.0\"\nroute: { fallback: [ext.cut, ext.second] }\n" + common,
	}))
	s, err := b.Create(t.Context(), engine.Request{Profile: "profile.cut", Name: "one"}, nil, nil)
	if err == nil || s.ID == "" || !strings.Contains(err.Error(), "may exist at ext.cut") || creates.Load() < 2 {
		t.Errorf("%q is told after %d requests: %v", s.ID, creates.Load(), err)
	}
	if there := b.holds(b.dear); len(there) > 0 {
		t.Errorf("the second place holds %v", there)
	}
}
