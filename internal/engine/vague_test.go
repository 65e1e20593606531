package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// vague is a vendor that makes the sandbox, loses the answer, and counts what
// it has made against the quota of the next request.
type vague struct {
	extensions.Extension
	asked *atomic.Int64
	then  extensions.Kind
}

func (x vague) Describe() extensions.Descriptor {
	d := x.Extension.Describe()
	d.Handler = "vague"
	return d
}

func (x vague) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	be, err := x.Extension.Open(ctx, cfg)
	return vagueBackend{be, x}, err
}

type vagueBackend struct {
	extensions.Backend
	of vague
}

func (b vagueBackend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	if b.of.asked.Add(1) > 1 {
		return extensions.Handle{}, extensions.Observation{}, extensions.Errorf(b.of.then, "no more than one at a time")
	}
	_, _, err := b.Backend.Provision(ctx, spec)
	return extensions.Handle{}, extensions.Observation{}, err
}

// What was found after a lost answer is there, whatever the next answer is: it
// is ended before another place is asked, and nothing is freed before that.
func TestWhatWasFoundIsNotForgottenForTheNextAnswer(t *testing.T) {
	t.Parallel()
	for _, then := range []extensions.Kind{extensions.KindExhausted, extensions.KindUnavailable, extensions.KindInvalid, extensions.KindUnauthorized, extensions.KindUnsupported, extensions.KindUnreachable} {
		t.Run(string(then), func(t *testing.T) {
			t.Parallel()
			dir, at := t.TempDir(), t.TempDir()
			catalog := folder(t, map[string]string{
				"extensions/ext.vague.yaml":   "id: ext.vague\nhandler: vague\nconfig: { dir: \"" + at + "\" }\ncost: { per_hour: \"1.00 USD\" }\n",
				"profiles/profile.vague.yaml": "id: profile.vague\nversion: \"1.0.0\"\nextension: ext.vague\n" + common,
			})
			e, err := engine.New(engine.Options{Extensions: append(all(), vague{saasstub.New(), new(atomic.Int64), then}), StateDir: dir, Account: "acme/web", Catalog: []string{catalog}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			b := &bank{Engine: e, t: t}
			if b.l, err = ledger.Open(t.Context(), ledger.DefaultURL(dir), ledger.Options{}); err != nil {
				t.Fatal(err)
			}
			defer b.l.Close()
			b.grant(5 * dollar)
			b.does(at, saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoLoseAnswer, Times: 1})
			s, err := e.Create(t.Context(), engine.Request{Profile: "profile.vague", Name: "one"}, nil, nil)
			objs, oerr := vendor.At(at).Objects()
			if err == nil || s.ID != "" || oerr != nil || len(objs) > 0 {
				t.Errorf("%s is told, %d are there: %v, %v", s.ID, len(objs), told(err), oerr)
			}
			b.pays("nothing is left", 5*dollar, 0, 0)
			b.verified()
		})
	}
}
