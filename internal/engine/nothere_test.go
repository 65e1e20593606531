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

// What a place does not offer, another may.
func TestAPlaceThatDoesNotOfferItLetsTheNextBeTried(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.does(w.vendor, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoNotOffered, Message: "the image python:3.12 is not here"})
	s, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
	if err != nil || len(w.holds(w.vendor)) != 0 || len(w.holds(w.dear)) != 1 {
		t.Fatalf("%v; first holds %d, second %d", err, len(w.holds(w.vendor)), len(w.holds(w.dear)))
	}
	a := s.Route.Attempts
	if len(a) != 2 || a[0].Candidate != "ext.first" || a[0].Outcome != string(extensions.KindUnsupported) ||
		!strings.Contains(a[0].Reason, "python:3.12 is not here") || a[1].Outcome != "ready" {
		t.Errorf("attempts: %+v", a)
	}
	w.clean()
}

func TestAPinnedPlaceGivesItsRefusalItself(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.does(w.vendor, saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoNotOffered})
	s, err := w.Create(context.Background(), engine.Request{Profile: "profile.first", Name: "one"}, nil, nil)
	if s.ID != "" || !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(err.Error(), "the account's plan") ||
		extensions.RemedyOf(err) == "" || len(w.holds(w.vendor))+len(w.holds(w.dear)) != 0 {
		t.Errorf("%q: %v (%s)", s.ID, err, extensions.RemedyOf(err))
	}
	w.clean()
}

// Once something was made, a refusal is no longer the answer of a place that has nothing.
func TestARefusalAfterSomethingWasMadeStops(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.does(w.vendor, saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoNotOffered})
	s, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
	if s.ID != "" || !extensions.IsKind(err, extensions.KindUnsupported) || len(w.holds(w.vendor))+len(w.holds(w.dear)) != 0 {
		t.Errorf("%q: %v; first holds %d, second %d", s.ID, err, len(w.holds(w.vendor)), len(w.holds(w.dear)))
	}
	w.clean()
}

func TestARefusedKeyNeverSpendsElsewhere(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	if err := saasstub.WriteScript(w.vendor, saasstub.Script{RequireKey: true}); err != nil { // refused when it is opened
		t.Fatal(err)
	}
	s, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
	if s.ID != "" || !extensions.IsKind(err, extensions.KindUnauthorized) || len(w.holds(w.dear)) != 0 {
		t.Errorf("%q: %v; second holds %d", s.ID, err, len(w.holds(w.dear)))
	}
	w.does(w.vendor)
	w.clean()
}

// refusing is an extension that refuses every request as soon as it sees it.
type refusing struct{ extensions.Extension }

func (x refusing) Describe() extensions.Descriptor {
	d := x.Extension.Describe()
	d.Handler = "refusing"
	return d
}

func (refusing) CheckSpec(context.Context, extensions.Config, extensions.Spec) ([]string, error) {
	return nil, extensions.Errorf(extensions.KindUnsupported, "no such size here").WithRemedy("ask for a smaller one")
}

// A place that refuses a request before it is called is passed over like one that refuses when asked.
func TestAPlaceThatRefusesTheSpecIsPassedOverInThePlanAndTheCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binding := func(id, handler, sub string) string {
		return "id: ext." + id + "\ntitle: " + id + "\nhandler: " + handler + "\nconfig: { dir: \"" + dir + "/" + sub + "\" }\n"
	}
	profile := func(id, route string) string {
		return "id: profile." + id + "\nversion: \"1.0.0\"\n" + route + "\n" + common
	}
	e, err := engine.New(engine.Options{Extensions: []extensions.Extension{saasstub.New(), refusing{saasstub.New()}}, StateDir: dir, Account: "acme/web",
		Catalog: []string{folder(t, map[string]string{
			"extensions/ext.first.yaml":  binding("first", "refusing", "first"),
			"extensions/ext.second.yaml": binding("second", "saas-stub", "second"),
			"profiles/profile.two.yaml":  profile("two", "route: { strategy: explicit, fallback: [ext.first, ext.second] }"),
			"profiles/profile.one.yaml":  profile("one", "extension: ext.first"),
		})}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx := t.Context()
	for _, p := range []string{"profile.two", "profile.one"} {
		_, planned := e.Plan(ctx, engine.Request{Profile: p, Name: "one"})
		s, made := e.Create(ctx, engine.Request{Profile: p, Name: "one"}, nil, nil)
		if p == "profile.one" {
			if !extensions.IsKind(planned, extensions.KindUnsupported) || !extensions.IsKind(made, extensions.KindUnsupported) || s.ID != "" {
				t.Errorf("pinned: plan %v, create %v", planned, made)
			}
			continue
		}
		if planned != nil || made != nil {
			t.Fatalf("plan %v, create %v", planned, made)
		}
		a := s.Route.Attempts
		if s.Extension != "ext.second" || len(a) != 2 || !strings.Contains(a[0].Reason, "no such size here") {
			t.Errorf("at %s, attempts %+v", s.Extension, a)
		}
		if _, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Error(err)
		}
	}
}
