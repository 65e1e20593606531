package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// two is a catalog with two vendors of the same kind, the second dearer.
type two struct {
	*bench
	dirs [2]string
}

func newTwo(t *testing.T) two {
	t.Helper()
	b := newBench(t)
	w := two{b, [2]string{filepath.Join(b.dir, "first"), filepath.Join(b.dir, "second")}}
	price := func(ext, vcpu string) string {
		return "id: prices." + ext + "\nextension: ext." + ext + "\nversion: \"1\"\nas_of: \"2026-08-01\"\nvalid_until: \"2036-11-21\"\nsource: test\n" +
			"currency: USD\nconfidence: exact\nbilling: wall-clock\nidle: zero\ndefaults: { cpu: \"1\", memory_mb: 512 }\n" +
			"components:\n  - { component: vcpu, unit: vcpu-second, price: \"" + vcpu + "\" }\n"
	}
	dir := folder(t, map[string]string{
		"extensions/ext.first.yaml":   "id: ext.first\ntitle: First\nhandler: saas-stub\npriority: 10\nconfig: { dir: \"" + w.dirs[0] + "\" }\n",
		"extensions/ext.second.yaml":  "id: ext.second\ntitle: Second\nhandler: saas-stub\nconfig: { dir: \"" + w.dirs[1] + "\" }\n",
		"prices/prices.first.yaml":    price("first", "0.0001"),
		"prices/prices.second.yaml":   price("second", "0.001"),
		"profiles/profile.two.yaml":   "id: profile.two\nversion: \"1.0.0\"\nroute: { strategy: prefer-self-hosted, fallback: [ext.first, ext.second] }\n" + common,
		"profiles/profile.first.yaml": "id: profile.first\nversion: \"1.0.0\"\nextension: ext.first\n" + common,
	})
	b.catalog = dir
	b.Engine = b.reopen()
	return w
}

const common = "isolation: { level: container }\nnetwork: { default: deny }\nworkspace: { mode: remote-canonical, access: rw }\n" +
	"ttl: { default: 1h, max: 24h }\nresources: { cpu: 1, memory_mb: 512 }\n"

func (w two) does(i int, rules ...saasstub.Rule) {
	w.t.Helper()
	if err := saasstub.WriteScript(w.dirs[i], saasstub.Script{Rules: rules}); err != nil {
		w.t.Fatal(err)
	}
}

func (w two) holds(i int) int {
	w.t.Helper()
	objs, err := vendor.At(w.dirs[i]).Objects()
	if err != nil {
		w.t.Fatal(err)
	}
	return len(objs)
}

func TestTheNextPlaceIsTakenOnlyWhereNothingWasMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule    saasstub.Rule
		second  bool // the second place gets it
		outcome extensions.Kind
	}{
		"quota":        {saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota}, true, extensions.KindExhausted},
		"full":         {saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoNoCapacity}, true, extensions.KindExhausted},
		"unavailable":  {saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoUnavailable}, true, extensions.KindUnavailable},
		"full later":   {saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoNoCapacity}, true, extensions.KindExhausted},
		"invalid":      {saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoInvalid}, false, extensions.KindInvalid},
		"unauthorized": {saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoUnauthorized}, false, extensions.KindUnauthorized},
		"unreachable":  {saasstub.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable}, true, extensions.KindUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwo(t)
			w.does(0, c.rule)
			s, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
			w.does(0)
			if c.second != (err == nil) || c.second != (w.holds(1) == 1) || w.holds(0) != 0 {
				t.Fatalf("%v; first holds %d, second %d", err, w.holds(0), w.holds(1))
			}
			if !c.second {
				if !extensions.IsKind(err, c.outcome) {
					t.Errorf("kind %s: %v", extensions.KindOf(err), err)
				}
				return
			}
			a := s.Route.Attempts
			if len(a) != 2 || a[0].Candidate != "ext.first" || a[0].Outcome != string(c.outcome) || a[0].Reason == "" || a[1].Candidate != "ext.second" || a[1].Outcome != "ready" || s.Route.Chosen != "ext.second" {
				t.Errorf("route: %+v", s.Route)
			}
			if _, err := w.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil || w.holds(1) != 0 {
				t.Errorf("destroy: %v, %d left", err, w.holds(1))
			}
			// The second one's price, not the first one's.
			cs, err := w.Charges(context.Background(), s.ID)
			if err != nil || len(cs) != 1 || cs[0].Component != "vcpu" || !strings.Contains(s.Receipt.Prices, "ext.second") {
				t.Errorf("charges %+v by %s, %v", cs, s.Receipt.Prices, err)
			}
			w.clean()
		})
	}
}

func TestALostAnswerNeverMakesASecondSandboxElsewhere(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]saasstub.Rule{
		"lost":                       {{Op: vendor.OpCreate, Do: vendor.DoLoseAnswer, Times: 1}},
		"lost at the last step":      {{Op: vendor.OpStart, Do: vendor.DoLoseAnswer, Times: 1}},
		"lost, and full at the next": {{Op: vendor.OpCreate, Do: vendor.DoLoseAnswer, Times: 1}, {Op: vendor.OpStart, Do: vendor.DoQuota}},
		"lost again and again":       {{Op: vendor.OpCreate, Do: vendor.DoLoseAnswer}, {Op: vendor.OpStart, Do: vendor.DoLoseAnswer}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwo(t)
			w.does(0, rules...)
			s, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
			w.does(0)
			if n := w.holds(0) + w.holds(1); n > 1 || n == 1 && s.ID == "" || n == 0 && err == nil {
				t.Errorf("%d exist, named %q: %v", n, s.ID, err)
			}
			if s.ID != "" {
				if _, err := w.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil {
					t.Error(err)
				}
			}
			if n := w.holds(0) + w.holds(1); n > 0 {
				t.Errorf("%d are left", n)
			}
			w.clean()
		})
	}
}

// A place that made the sandbox and then answers nothing any more may hold it:
// nothing is made elsewhere, and what is named is found and ended later.
func TestAPlaceThatGoesSilentKeepsTheSandboxItsOwn(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]vendor.Op{"while it is made": vendor.OpCreate, "while it starts": vendor.OpStart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwo(t)
			w.does(0, saasstub.Rule{Op: lost, Do: vendor.DoLoseAnswer, Times: 1}, saasstub.Rule{Op: vendor.OpGet, Do: vendor.DoUnreachable},
				saasstub.Rule{Op: vendor.OpFind, Do: vendor.DoUnreachable}, saasstub.Rule{Op: vendor.OpList, Do: vendor.DoUnreachable}, saasstub.Rule{Op: vendor.OpDelete, Do: vendor.DoUnreachable})
			ctx := context.Background()
			s, err := w.Create(ctx, engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
			if err == nil || s.ID == "" || w.holds(0) != 1 || w.holds(1) != 0 {
				t.Fatalf("%q; first holds %d, second %d: %v", s.ID, w.holds(0), w.holds(1), err)
			}
			if _, err := w.Create(ctx, engine.Request{Profile: "profile.two", Name: "one"}, nil, nil); err == nil || w.holds(1) != 0 {
				t.Errorf("the name was free while it may exist: %v, second holds %d", err, w.holds(1))
			}
			w.does(0)
			if _, err := w.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || w.holds(0)+w.holds(1) != 0 {
				t.Errorf("destroy: %v; first holds %d, second %d", err, w.holds(0), w.holds(1))
			}
			w.clean()
		})
	}
}

func TestTheCeilingHoldsForTheNextPlaceToo(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	req := engine.Request{Profile: "profile.two", Name: "one", TTL: "1h", MaxCost: "0.50 USD"} // 0.36 at the first, 3.60 at the second
	w.does(0, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota})
	s, err := w.Create(context.Background(), req, nil, nil)
	if err == nil || s.ID != "" || w.holds(1) != 0 || !strings.Contains(err.Error(), "max_cost") || !strings.Contains(err.Error(), "3.6") {
		t.Errorf("%s: %v; second holds %d", s.ID, err, w.holds(1))
	}
	w.does(0)
	if s, err = w.Create(context.Background(), req, nil, nil); err != nil || s.Extension != "ext.first" {
		t.Errorf("below the ceiling: %s, %v", s.Extension, err)
	}
	req.Name, req.MaxCost = "two", "0.30 USD"
	if _, err = w.Create(context.Background(), req, nil, nil); !extensions.IsKind(err, extensions.KindInvalid) || w.holds(0) != 1 {
		t.Errorf("above the ceiling: %v, %d exist", err, w.holds(0))
	}
	if _, err := w.Plan(context.Background(), req); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("not told at plan: %v", err)
	}
	w.clean()
}

func TestAFailedRouteIsRecordedWithItsAttempts(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	for i := range 2 {
		w.does(i, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota})
	}
	_, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
	if err == nil {
		t.Fatal("made")
	}
	list, err := w.List(context.Background(), true)
	if err != nil || len(list) != 1 || len(list[0].Route.Attempts) != 2 || list[0].Route.Attempts[1].Outcome != "exhausted" {
		t.Errorf("%+v, %v", list, err)
	}
}

// A create that is ended between two places tells why the first refused, and no
// more than once that it was ended.
func TestACreateEndedBetweenTwoPlacesTellsTheFirstRefusal(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.does(0, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoNoCapacity})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := w.Create(ctx, engine.Request{Profile: "profile.two", Name: "one"}, nil, func(n engine.Notice) {
		if n.Summary == "Trying the next place" {
			cancel()
		}
	})
	if !extensions.IsKind(err, extensions.KindInterrupted) || !strings.Contains(err.Error(), "ext.first") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v", extensions.KindOf(err), err)
	}
	if n := w.holds(0) + w.holds(1); n != 0 {
		t.Errorf("%d are left", n)
	}
}
