package engine_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func refusedBy(s engine.Sandbox, candidate string) (rules []string) {
	for _, r := range s.Route.Refused {
		for _, f := range r.Refusals {
			if r.Candidate == candidate && f.Reason != "" && f.Remedy != "" {
				rules = append(rules, f.Rule)
			}
		}
	}
	return rules
}

// plainHosts is hosted with a profile that runs anywhere; make creates there
// and cleans up.
func plainHosts(t *testing.T) (b hosts, make func(name, conflict string, hosts ...engine.Host) (engine.Sandbox, error)) {
	b = newHosts(t, map[string]string{"profiles/profile.plain.yaml": "id: profile.plain\nversion: \"1.0.0\"\nnetwork: { default: allow " +
		"}\nttl: { default: 10m }\n"})
	return b, func(name, conflict string, hosts ...engine.Host) (engine.Sandbox, error) {
		s, err := b.Create(context.Background(), plain(name, conflict, hosts...), nil, nil)
		if err == nil {
			t.Cleanup(func() {
				if _, err := b.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil &&
					!extensions.IsKind(err, extensions.KindConflict) {
					t.Error(err)
				}
			})
		}
		return s, err
	}
}

func plain(name, conflict string, hosts ...engine.Host) engine.Request {
	req := engine.Request{Profile: "profile.plain", Name: name, OnConflict: conflict}
	for _, h := range hosts {
		req.Hosts = append(req.Hosts, h.Ref())
	}
	return req
}

func sshHost(name string, capacity int64) engine.Host {
	h := onSSH(true)
	h.Name = name
	if capacity > 0 {
		h.Capacity = &extensions.HostCapacity{MaxSandboxes: capacity}
	}
	return h
}

// A host that is down is refused with what it failed by, where another is
// left; where none is, it is tried all the same.
func TestASilentHostIsUnreachableAndNotAbsent(t *testing.T) {
	t.Parallel()
	takesLong(t)
	b, create := plainHosts(t)
	near, far := sshHost("near", 0), sshHost("far", 0)
	b.x.setDown("near")
	for i, name := range []string{"one", "two"} {
		s, err := create(name, "", near, far)
		if err != nil || s.HostName != "far" || strings.Join(refusedBy(s, "ext.hosted@near"), " ") != "viability.unreachable" ||
			len(s.Route.Attempts) != 1 {
			t.Fatalf("%s: %v, %+v", name, told(err), s.Route)
		}
		if !strings.Contains(s.Route.Explained, "nothing listens at near") {
			t.Errorf("not told: %s", s.Route.Explained)
		}
		b.x.mu.Lock()
		if b.x.listed != 1 { // near, once; with far alone left there is nothing to choose
			t.Errorf("after %d creates it was asked %d times", i+1, b.x.listed)
		}
		b.x.mu.Unlock()
	}
	if _, err := create("three", "", near); !extensions.IsKind(err, extensions.KindUnreachable) ||
		!strings.Contains(told(err), "nothing listens at near") {
		t.Errorf("the only host: %s", told(err))
	}
	b.x.setDown()
	if s, err := create("four", "", near); err != nil || s.HostName != "near" {
		t.Errorf("the only host is back: %s", told(err))
	}
}

// A full place is left out of the decision; the plan, which does not count,
// stays as it is.
func TestAFullPlaceIsRefusedAndTheNextChosen(t *testing.T) {
	t.Parallel()
	b, create := plainHosts(t)
	small, large := sshHost("small", 1), sshHost("large", 0)
	before, err := b.Plan(context.Background(), plain("one", "", small, large))
	if err != nil {
		t.Fatal(err)
	}
	one, err := create("one", "", small, large)
	two, err2 := create("two", "", small, large)
	if err != nil || err2 != nil || one.HostName != "small" || two.HostName != "large" ||
		strings.Join(refusedBy(two, "ext.hosted@small"), " ") != "viability.capacity" {
		t.Fatalf("%v, %v: made at %s and %s: %+v", err, err2, one.HostName, two.HostName, two.Route.Refused)
	}
	after, err := b.Plan(context.Background(), plain("three", "", small, large))
	if err != nil || !reflect.DeepEqual(after.Estimate, before.Estimate) {
		t.Errorf("the plan counts: %+v, %v", after.Estimate, err)
	}
	// What the request takes the place of takes no room beside it.
	mine, err := create("one", "adopt", small)
	if err != nil || mine.ID != one.ID {
		t.Errorf("adopting on a full host: %s", told(err))
	}
	if mine, err = b.Recreate(context.Background(), mine.Receipt, nil, nil); err != nil {
		t.Errorf("recreating on a full host: %s", told(err))
	}
	const want = "it is full: it has 1 of at most 1 sandboxes (viability.capacity)"
	if _, err := create("three", "", small); !extensions.IsKind(err, extensions.KindExhausted) || !strings.Contains(told(err), want) {
		t.Errorf("no place is left: %s", told(err))
	}
	b.end(mine)
	if s, err := create("three", "", small); err != nil || s.HostName != "small" {
		t.Errorf("there is room again: %s", told(err))
	}
}

// A create chooses by what was measured; the plan before it, which looks at no
// past, by the catalog's figures.
func TestLowestLatencyLearnsFromWhatWasMeasured(t *testing.T) {
	t.Parallel()
	const bound = "handler: hosted\nlatency: { create_to_ready: %s, source: a test, as_of: \"2026-01-02\" }\n"
	b := newHosts(t, map[string]string{
		"profiles/profile.fast.yaml": "id: profile.fast\nversion: \"1.0.0\"\nnetwork: { default: allow }\nttl: { default: 10m }\nroute: { " +
			"strategy: lowest-latency }\n",
		"profiles/profile.slow.yaml": "id: profile.slow\nversion: \"1.0.0\"\nextends: profile.fast\nextension: ext.slow\nroute: { strategy: " +
			"lowest-latency }\n",
		"extensions/slow.yaml":    "id: ext.slow\n" + fmt.Sprintf(bound, "50m"),
		"extensions/hosted2.yaml": "id: ext.stated\n" + fmt.Sprintf(bound, "40m"),
	})
	ctx := context.Background()
	far := sshHost("far", 0)
	create := func(profile, name string) engine.Sandbox {
		t.Helper()
		s := b.create(engine.Request{Profile: profile, Name: name, Hosts: []string{far.Ref()}})
		t.Cleanup(func() {
			b.end(s)
		})
		return s
	}
	if s := create("profile.fast", "one"); s.Extension != "ext.stated" ||
		!strings.Contains(s.Route.Explained, "ext.stated@far takes 40m0s to get ready, according to the catalog") {
		t.Errorf("without history: %s", s.Route.Explained)
	}
	create("profile.slow", "two") // and it is not that slow
	plan, err := b.Plan(ctx, engine.Request{Profile: "profile.fast", Name: "three", Hosts: []string{far.Ref()}})
	if err != nil || plan.Estimate.Candidates[0].Extension != "ext.stated" {
		t.Errorf("the plan looks at the past: %+v, %v", plan.Estimate.Candidates, err)
	}
	s := create("profile.fast", "three")
	if !strings.Contains(s.Route.Explained, "ext.slow@far took ") || strings.Contains(s.Route.Explained, "according to the catalog") ||
		s.Route.Order[2] != "ext.hosted@far" {
		t.Errorf("with history: %v %s", s.Route.Order, s.Route.Explained)
	}
}

// This machine costs nothing, and is counted at its shadow price all the same.
func TestLowestCostCountsWhatIsFree(t *testing.T) {
	t.Parallel()
	files := map[string]string{"profiles/cheap.yaml": "id: profile.cheap\nversion: \"1.0.0\"\nisolation: { level: process }\n" +
		"network: { default: allow }\nttl: { default: 10m }\nroute: { strategy: lowest-cost }\n"}
	for id, cost := range map[string]string{"ext.cheap": "0.01 USD", "ext.dear": "0.99 USD"} {
		files["extensions/"+id+".yaml"] = "id: " + id + "\nhandler: local\ncost: { per_hour: \"" + cost + "\" }\n"
	}
	e := newBench(t, onFiles(files))
	p, err := e.Plan(context.Background(), engine.Request{Profile: "profile.cheap"})
	if err != nil {
		t.Fatal(told(err))
	}
	var order []string
	for _, c := range p.Estimate.Candidates {
		if c.Eligible {
			order = append(order, c.Extension)
		}
	}
	if got := strings.Join(order, " "); got != "ext.cheap ext.local ext.dear" {
		t.Errorf("ordered %s", got)
	}
	shadowed := slices.ContainsFunc(p.Notices, func(n engine.Notice) bool {
		return strings.HasPrefix(n.Summary, "ext.local counts at a shadow price of 0.0")
	})
	if !shadowed {
		t.Errorf("not told: %+v", p.Notices)
	}
}
