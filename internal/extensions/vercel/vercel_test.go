package vercel_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

func opened(t *testing.T, cfg extensions.Config) extensions.Backend {
	t.Helper()
	b, err := vercel.New().Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

func ready(t *testing.T, cfg extensions.Config, b extensions.Backend, opts ...exttest.Option) extensions.Handle {
	t.Helper()
	spec := exttest.Spec(t, cfg, opts...)
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	_, err = b.WaitReady(t.Context(), spec, h)
	must(t, err)
	return h
}

// The vendor forgets its meter with the sandbox and completes it with the stop, which takes a while.
func TestTheMeterIsReadBetweenTheStopAndTheDelete(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	v.SetLag(verceltest.Lag{Begin: time.Second, Stop: 2 * time.Second, List: time.Minute})
	b := opened(t, cfg)
	h := ready(t, cfg, b)
	must(t, v.Charge(h.Ref, verceltest.Meter{CPU: 3 * time.Second, EgressBytes: 5, IngressBytes: 7}))
	v.Clock().Advance(time.Minute)
	report, err := b.Teardown(t.Context(), h)
	must(t, err)
	u := report.Usage
	if u == nil || u.CPUMillis == nil || *u.CPUMillis != 3000 || u.EgressBytes == nil || *u.EgressBytes != 12 ||
		u.Running < time.Minute || u.Running != u.EndedAt.Sub(u.StartedAt) || u.MemoryMiBMillis == nil ||
		*u.MemoryMiBMillis != 4096*u.Running.Milliseconds() {
		t.Errorf("%+v", u)
	}
	if left := v.Sandboxes(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestWhatIsAskedForAtTheCreate(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	b := opened(t, cfg)
	memory := int64(5000)
	h := ready(t, cfg, b, exttest.With(func(s *extensions.Spec) {
		s.Resources.MemoryMB = &memory
		s.Options = map[string]any{"runtime": "node24"}
		s.Network = extensions.Network{Default: "deny"}
	}))
	is := v.Sandboxes()[0]
	if is.VCPUs != 3 || is.Persistent || is.Runtime != "node24" || is.Policy["mode"] != "deny-all" || len(is.Ports) != 0 || len(is.Tags) > 5 ||
		is.Name != string(h.ID) {
		t.Errorf("%+v", is)
	}
	give := b.(extensions.URLGiver)
	first, err := give.URL(t.Context(), h, 8080)
	must(t, err)
	_, err = give.URL(t.Context(), h, 3000)
	must(t, err)
	again, err := give.URL(t.Context(), h, 8080)
	if must(t, err); again.Address != first.Address || !slices.Equal(v.Sandboxes()[0].Ports, []int{3000, 8080}) {
		t.Errorf("%s, %s, %v", first.Address, again.Address, v.Sandboxes()[0].Ports)
	}
}

func TestAnotherRegionThanAskedForEndsIt(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	b := opened(t, cfg)
	in := func(s *extensions.Spec) { s.Region = "fra1" }
	must1(b.Teardown(t.Context(), ready(t, cfg, b, exttest.With(in))))
	v.SetPlan(verceltest.Plan{Region: "iad1"})
	h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg, exttest.With(in)))
	if !extensions.IsKind(err, extensions.KindUnsupported) || !h.IsZero() || len(v.Sandboxes()) != 0 || v.Creates() != 2 {
		t.Errorf("%v, %s, %d left", err, h.Encode(), len(v.Sandboxes()))
	}
}

// A wrong project is not found either, and nothing in it is absent because of that.
func TestAWrongProjectProvesNothingAbsent(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	h := ready(t, cfg, opened(t, cfg))
	v := vendorOf(cfg)
	cfg.Credentials = secrets("token", v.Token, "team_id", v.Team, "project_id", "prj_other")
	other := opened(t, cfg)
	all, err := other.Status(t.Context(), []extensions.Handle{h})
	if must(t, err); all[0].Phase == extensions.PhaseAbsent {
		t.Errorf("%+v", all[0])
	}
}

// An image or a runtime is lacking only where the project is there: a wrong project is the user's to mend, and no
// other place's to make up for.
func TestAWrongProjectIsToldWhateverItWasAskedFor(t *testing.T) {
	t.Parallel()
	right := at(t)
	wrong, v := right, vendorOf(right)
	wrong.Credentials = secrets("token", v.Token, "team_id", v.Team, "project_id", "prj_other")
	lacks := map[string]any{"runtime": "node1"}
	for _, c := range []struct {
		in      extensions.Config
		options map[string]any
		kind    extensions.Kind
		remedy  string
	}{
		{wrong, nil, extensions.KindUnauthorized, "project_id"},
		{wrong, map[string]any{"runtime": "node24"}, extensions.KindUnauthorized, "project_id"},
		{wrong, lacks, extensions.KindUnauthorized, "project_id"},
		{right, lacks, extensions.KindUnsupported, "options.runtime"},
	} {
		spec := exttest.Spec(t, c.in, exttest.With(func(s *extensions.Spec) { s.Options = c.options }))
		h, _, err := opened(t, c.in).Provision(t.Context(), spec)
		if !h.IsZero() || !extensions.IsKind(err, c.kind) || !strings.Contains(extensions.RemedyOf(err), c.remedy) {
			t.Errorf("%v: %v", c.options, err)
		}
	}
}

func TestBothMeaningsOfTooMany(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	v.SetPlan(verceltest.Plan{Concurrent: 10, VCPUsPerCycle: 20})
	b := opened(t, cfg)
	var all sync.WaitGroup
	for range 10 {
		spec := exttest.Spec(t, cfg)
		all.Go(func() {
			if _, _, err := b.Provision(t.Context(), spec); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	_, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
	if !extensions.IsKind(err, extensions.KindUnavailable) {
		t.Errorf("beyond the rate: %v", err)
	}
	v.Clock().Advance(time.Minute + time.Second)
	if _, _, err = b.Provision(t.Context(), exttest.Spec(t, cfg)); !extensions.IsKind(err, extensions.KindExhausted) {
		t.Errorf("beyond the quota: %v", err)
	}
	if n := v.Creates(); n != 10 {
		t.Errorf("%d creates", n)
	}
}

func TestAPlansLimitIsRefusedBeforeItIsAsked(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	cfg.Values["plan"] = "hobby"
	b := opened(t, cfg)
	cpu := extensions.Milli(5000)
	for name, change := range map[string]func(*extensions.Spec){
		"ttl":  func(s *extensions.Spec) { s.Deadline = time.Now().Add(46 * time.Minute) },
		"vcpu": func(s *extensions.Spec) { s.Resources.CPU = &cpu },
	} {
		if _, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg, exttest.With(change))); !extensions.IsKind(err, extensions.KindUnsupported) ||
			extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := vendorOf(cfg).Requests(); len(got) > 0 {
		t.Errorf("%d requests", len(got))
	}
}
