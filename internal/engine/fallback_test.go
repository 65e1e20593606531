package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func TestTheNextPlaceIsTakenOnlyWhereNothingWasMade(t *testing.T) {
	t.Parallel()
	takesLong(t)
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
			w.script(c.rule)
			s, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
			w.script()
			if c.second != (err == nil) || c.second != (len(w.holds(w.dear)) == 1) || len(w.holds(w.vendor)) != 0 {
				t.Fatalf("%v; first holds %d, second %d", err, len(w.holds(w.vendor)), len(w.holds(w.dear)))
			}
			if !c.second {
				if !extensions.IsKind(err, c.outcome) {
					t.Errorf("kind %s: %v", extensions.KindOf(err), err)
				}
				return
			}
			a := s.Route.Attempts
			if len(a) != 2 || a[0].Candidate != "ext.first" || a[0].Outcome != string(c.outcome) || a[0].Reason == "" ||
				a[1].Candidate != "ext.second" || a[1].Outcome != "ready" || s.Route.Chosen != "ext.second" {
				t.Errorf("route: %+v", s.Route)
			}
			if _, err := w.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil || len(w.holds(w.dear)) != 0 {
				t.Errorf("destroy: %v, %d left", err, len(w.holds(w.dear)))
			}
			// The second one's price, not the first one's.
			cs, err := w.Charges(context.Background(), s.ID)
			want := map[bool]int{true: 2, false: 1}[c.rule.Op == vendor.OpStart] // what was made there first is paid too
			if err != nil || len(cs) != want || cs[0].Component != "vcpu" || !strings.Contains(s.Receipt.Prices, "ext.second") {
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
			w.script(rules...)
			s, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
			w.script()
			if n := len(w.holds(w.vendor)) + len(w.holds(w.dear)); n > 1 || n == 1 && s.ID == "" || n == 0 && err == nil {
				t.Errorf("%d exist, named %q: %v", n, s.ID, err)
			}
			if s.ID != "" {
				w.end(s)
			}
			if n := len(w.holds(w.vendor)) + len(w.holds(w.dear)); n > 0 {
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
	takesLong(t)
	for name, lost := range map[string]vendor.Op{"while it is made": vendor.OpCreate, "while it starts": vendor.OpStart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwo(t)
			w.script(saasstub.Rule{Op: lost, Do: vendor.DoLoseAnswer, Times: 1}, saasstub.Rule{Op: vendor.OpGet, Do: vendor.DoUnreachable},
				saasstub.Rule{Op: vendor.OpFind, Do: vendor.DoUnreachable}, saasstub.Rule{Op: vendor.OpList, Do: vendor.DoUnreachable},
				saasstub.Rule{Op: vendor.OpDelete, Do: vendor.DoUnreachable})
			ctx := context.Background()
			s, err := w.Create(ctx, engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
			if err == nil || s.ID == "" || len(w.holds(w.vendor)) != 1 || len(w.holds(w.dear)) != 0 {
				t.Fatalf("%q; first holds %d, second %d: %v", s.ID, len(w.holds(w.vendor)), len(w.holds(w.dear)), err)
			}
			if _, err := w.Create(ctx, engine.Request{Profile: "profile.two", Name: "one"}, nil, nil); err == nil || len(w.holds(w.dear)) != 0 {
				t.Errorf("the name was free while it may exist: %v, second holds %d", err, len(w.holds(w.dear)))
			}
			w.script()
			if _, err := w.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || len(w.holds(w.vendor))+len(w.holds(w.dear)) != 0 {
				t.Errorf("destroy: %v; first holds %d, second %d", err, len(w.holds(w.vendor)), len(w.holds(w.dear)))
			}
			w.clean()
		})
	}
}

func TestTheCeilingHoldsForTheNextPlaceToo(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	req := engine.Request{Profile: "profile.two", Name: "one", TTL: "1h", MaxCost: "0.50 USD"} // 0.36 at the first, 3.60 at the second
	w.script(saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota})
	s, err := w.Create(context.Background(), req, nil, nil)
	if err == nil || s.ID != "" || len(w.holds(w.dear)) != 0 || !strings.Contains(err.Error(), "max_cost") ||
		!strings.Contains(err.Error(), "3.6") {
		t.Errorf("%s: %v; second holds %d", s.ID, err, len(w.holds(w.dear)))
	}
	w.script()
	if s, err = w.Create(context.Background(), req, nil, nil); err != nil || s.Extension != "ext.first" {
		t.Errorf("below the ceiling: %s, %v", s.Extension, err)
	}
	req.Name, req.MaxCost = "two", "0.30 USD"
	if _, err = w.Create(context.Background(), req, nil, nil); !extensions.IsKind(err, extensions.KindInvalid) || len(w.holds(w.vendor)) != 1 {
		t.Errorf("above the ceiling: %v, %d exist", err, len(w.holds(w.vendor)))
	}
	if _, err := w.Plan(context.Background(), req); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("not told at plan: %v", err)
	}
	w.clean()
}

func TestAFailedRouteIsRecordedWithItsAttempts(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	for _, dir := range []string{w.vendor, w.dear} {
		w.does(dir, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota})
	}
	told := 0
	_, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, nil, func(n engine.Notice) {
		if n.Summary == "Trying the next place" {
			told++
		}
	})
	if err == nil || told != 1 { // there is no place after the last one
		t.Fatalf("%v, told %d times of a next place", err, told)
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
	w.script(saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoNoCapacity})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := w.Create(ctx, engine.Request{Profile: "profile.two", Name: "one"}, nil, func(n engine.Notice) {
		if n.Summary == "Trying the next place" {
			cancel()
		}
	})
	if !extensions.IsKind(err, extensions.KindInterrupted) || !strings.Contains(err.Error(), "ext.first") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v", extensions.KindOf(err), err)
	}
	if n := len(w.holds(w.vendor)) + len(w.holds(w.dear)); n != 0 {
		t.Errorf("%d are left", n)
	}
}
