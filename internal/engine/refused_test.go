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
	w := newTwo(t)
	w.does(0, saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
	req := engine.Request{Profile: "profile.first", Name: "one"}
	s, err := w.Create(t.Context(), req, nil, nil)
	if !extensions.IsKind(err, extensions.KindUnreachable) || s.ID != "" || strings.Contains(err.Error(), "may exist") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%q is told: %s: %v", s.ID, extensions.KindOf(err), err)
	}
	w.does(0)
	if s, err = w.Create(t.Context(), req, nil, nil); err != nil || s.Extension != "ext.first" || w.holds(0) != 1 {
		t.Errorf("made again at %q: %s, the vendor holds %d", s.Extension, told(err), w.holds(0))
	}
	w.clean()
}

// A connection that is refused halfway is no refused create.
func TestAConnectionRefusedHalfwayIsNoRefusedCreate(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.does(0, saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoUnreachable}, saasstub.Rule{Op: vendor.OpGet, Do: vendor.DoUnreachable},
		saasstub.Rule{Op: vendor.OpUsage, Do: vendor.DoUnreachable})
	s, err := w.Create(t.Context(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
	if err == nil || s.ID == "" || w.holds(0) != 1 || w.holds(1) != 0 {
		t.Errorf("%q is told, the first holds %d, the second %d: %v", s.ID, w.holds(0), w.holds(1), err)
	}
	w.does(0)
	if _, err := w.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil || w.holds(0) != 0 {
		t.Errorf("destroy: %s, %d are left", told(err), w.holds(0))
	}
	w.clean()
}

// cut is a vendor whose first request is lost on its way: a look-up right after
// it sees nothing, and from then on every connection is refused.
type cut struct {
	extensions.Extension
	creates, finds *atomic.Int64
}

func (x cut) Describe() extensions.Descriptor {
	d := x.Extension.Describe()
	d.Handler = "cut"
	return d
}

func (x cut) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	be, err := x.Extension.Open(ctx, cfg)
	return cutBackend{be, x}, err
}

type cutBackend struct {
	extensions.Backend
	of cut
}

func refusedConnection() error {
	return extensions.Errorf(extensions.KindUnreachable, "connection refused")
}

func (b cutBackend) Provision(context.Context, extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	if b.of.creates.Add(1) == 1 {
		return extensions.Handle{}, extensions.Observation{}, extensions.Errorf(extensions.KindIndeterminate, "the connection broke")
	}
	return extensions.Handle{}, extensions.Observation{}, refusedConnection()
}

func (b cutBackend) Find(context.Context, extensions.ID) (extensions.Handle, error) {
	if b.of.finds.Add(1) == 1 {
		return extensions.Handle{}, extensions.Errorf(extensions.KindNotFound, "nothing has this id")
	}
	return extensions.Handle{}, refusedConnection()
}

// What was sent and lost may still arrive: that the next connection is refused
// proves nothing of the one before.
func TestALostRequestStaysInDoubtWhereTheNextIsRefused(t *testing.T) {
	t.Parallel()
	second := t.TempDir()
	catalog := folder(t, map[string]string{
		"extensions/ext.cut.yaml":    "id: ext.cut\nhandler: cut\npriority: 10\nconfig: { dir: \"" + t.TempDir() + "\" }\ncost: { per_hour: \"1.00 USD\" }\n",
		"extensions/ext.second.yaml": "id: ext.second\nhandler: saas-stub\nconfig: { dir: \"" + second + "\" }\ncost: { per_hour: \"1.00 USD\" }\n",
		"profiles/profile.cut.yaml":  "id: profile.cut\nversion: \"1.0.0\"\nroute: { fallback: [ext.cut, ext.second] }\n" + common,
	})
	x := cut{saasstub.New(), new(atomic.Int64), new(atomic.Int64)}
	e, err := engine.New(engine.Options{Extensions: append(all(), x), StateDir: t.TempDir(), Account: "acme/web", Catalog: []string{catalog}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.Create(t.Context(), engine.Request{Profile: "profile.cut", Name: "one"}, nil, nil)
	if err == nil || s.ID == "" || !strings.Contains(err.Error(), "may exist at ext.cut") || x.creates.Load() < 2 {
		t.Errorf("%q is told after %d requests: %v", s.ID, x.creates.Load(), err)
	}
	if objs, err := vendor.At(second).Objects(); err != nil || len(objs) > 0 {
		t.Errorf("the second place holds %d: %v", len(objs), err)
	}
}
