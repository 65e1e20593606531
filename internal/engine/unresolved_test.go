package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// blind is a vendor that finds nothing again by id.
type blind struct{ extensions.Extension }

func (x blind) Describe() extensions.Descriptor {
	d := x.Extension.Describe()
	d.Handler, d.Find = "blind", extensions.Find{Strength: extensions.FindNone}
	return d
}

func (x blind) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	be, err := x.Extension.Open(ctx, cfg)
	return blindBackend{be}, err
}

type blindBackend struct{ extensions.Backend }

func (blindBackend) Find(context.Context, extensions.ID) (extensions.Handle, error) {
	return extensions.Handle{}, extensions.Errorf(extensions.KindIndeterminate, "nothing is found by id here")
}

// What nobody will ever know is given up once its own deadline is well over.
func TestWhatNobodyWillEverKnow(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"sqlite": "", "postgres": withClock(t, pgtest.New(t))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64
			dir, at := t.TempDir(), t.TempDir()
			catalog := folder(t, map[string]string{
				"extensions/ext.blind.yaml": "id: ext.blind\nhandler: blind\nconfig: { dir: \"" + at + "\" }\ncost: { per_hour: \"1.00 USD\" }\n",
				"profiles/profile.blind.yaml": "id: profile.blind\nversion: \"1.0.0\"\nextension: ext.blind\nisolation: { level: container }\nnetwork: { default: deny }\n" +
					"workspace: { mode: remote-canonical, access: rw }\nttl: { default: 1h, max: 24h }\n",
			})
			later := func(d time.Duration) { ahead.Add(int64(d)) }
			if address == "" {
				address = ledger.DefaultURL(dir)
			} else {
				machine := later
				later = func(d time.Duration) { machine(d); pgtest.Advance(t, address, d) }
			}
			e, err := engine.New(engine.Options{Extensions: append(all(), blind{saasstub.New()}), StateDir: dir, Account: "acme/web", Catalog: []string{catalog}, Ledger: address,
				Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			b := &bank{Engine: e, t: t}
			if b.l, err = ledger.Open(t.Context(), address, ledger.Options{}); err != nil {
				t.Fatal(err)
			}
			defer b.l.Close()
			b.grant(5 * dollar)
			b.does(at, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoLoseAnswer})
			s, err := e.Create(t.Context(), engine.Request{Profile: "profile.blind", Name: "one"}, nil, nil)
			if err == nil || s.ID == "" {
				t.Fatalf("%s, %v", s.ID, err)
			}
			b.does(at)
			later(time.Hour + time.Minute)
			if _, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err == nil {
				t.Error("given up a minute after its deadline")
			}
			b.pays("as long as it may exist", 4*dollar, dollar, 0)
			later(59 * time.Minute)
			r, err := e.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
			if err != nil || !strings.Contains(fmt.Sprint(r.Notices), "exposure") {
				t.Errorf("%+v, %v", r.Notices, err)
			}
			b.pays("given up", 5*dollar, 0, 0)
			if x := b.balance(ledger.AccountExposure); x.DebitsPosted != dollar {
				t.Errorf("%+v", x)
			}
			evs, err := b.l.Events(t.Context(), "acme", 1, 0)
			if err != nil || evs[len(evs)-1].Type != "sandbox.unresolved" && !strings.HasSuffix(evs[len(evs)-1].Type, ".unresolved") {
				t.Errorf("%+v, %v", evs[len(evs)-1], err)
			}
			b.verified()
		})
	}
}

func (b blindBackend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	h, o, err := b.Backend.Provision(ctx, spec)
	if err != nil {
		h = extensions.Handle{} // lost with the answer
	}
	return h, o, err
}
