package engine_test

import (
	"context"
	"reflect"
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

// plainBench is hosted with a profile that runs anywhere; make creates there
// and cleans up.
func plainBench(t *testing.T) (b hostBench, make func(name, conflict string, hosts ...engine.Host) (engine.Sandbox, error)) {
	b = newHostBench(t, map[string]string{"profiles/profile.plain.yaml": "id: profile.plain\nversion: \"1.0.0\"\nnetwork: { default: allow }\nttl: { default: 10m }\n"})
	return b, func(name, conflict string, hosts ...engine.Host) (engine.Sandbox, error) {
		s, err := b.Create(context.Background(), plain(name, conflict, hosts...), nil, nil)
		if err == nil {
			t.Cleanup(func() {
				if _, err := b.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil && !extensions.IsKind(err, extensions.KindConflict) {
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
	b, create := plainBench(t)
	near, far := sshHost("near", 0), sshHost("far", 0)
	b.x.setDown("near")
	for i, name := range []string{"one", "two"} {
		s, err := create(name, "", near, far)
		if err != nil || s.HostName != "far" || strings.Join(refusedBy(s, "ext.hosted@near"), " ") != "viability.unreachable" || len(s.Route.Attempts) != 1 {
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
	if _, err := create("three", "", near); !extensions.IsKind(err, extensions.KindUnreachable) || !strings.Contains(told(err), "nothing listens at near") {
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
	b, create := plainBench(t)
	small, large := sshHost("small", 1), sshHost("large", 0)
	before, err := b.Plan(context.Background(), plain("one", "", small, large))
	if err != nil {
		t.Fatal(err)
	}
	one, err := create("one", "", small, large)
	two, err2 := create("two", "", small, large)
	if err != nil || err2 != nil || one.HostName != "small" || two.HostName != "large" || strings.Join(refusedBy(two, "ext.hosted@small"), " ") != "viability.capacity" {
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
	const want = "it is full: 1 of at most 1 sandboxes are there (viability.capacity)"
	if _, err := create("three", "", small); !extensions.IsKind(err, extensions.KindExhausted) || !strings.Contains(told(err), want) {
		t.Errorf("no place is left: %s", told(err))
	}
	if _, err := b.Destroy(context.Background(), mine.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(err)
	}
	if s, err := create("three", "", small); err != nil || s.HostName != "small" {
		t.Errorf("there is room again: %s", told(err))
	}
}
