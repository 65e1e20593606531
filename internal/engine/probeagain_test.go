package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// An engine that lives for days looks again like any other: when facts are old, when the last look failed, and soon
// after it left no place.
func TestAnEngineThatLivesLongProbesAgain(t *testing.T) {
	t.Parallel()
	b := newFacts(t, extensions.PlaceAccount, twoBindings("", ""))
	req := engine.Request{Profile: "profile.first", Name: "one", TTL: "20m"}
	makes := func(what string, probes int, want string) {
		t.Helper()
		if _, err := b.makes(req); !strings.Contains(told(err), want) || want == "" && err != nil {
			t.Errorf("%s: %s, want %q", what, told(err), want)
		}
		b.x.asked(t, "ext.first", probes)
	}
	b.x.down = true
	makes("a probe that fails", 1, "")
	makes("right after it", 1, "")
	b.x.down = false
	b.x.set("ext.first", extensions.Facts{Unfit: []string{"billing is overdue"}})
	b.passes(2 * time.Minute)
	makes("later", 2, "billing is overdue")
	makes("right after that", 2, "billing is overdue")
	b.x.set("ext.first", extensions.Facts{})
	b.passes(2 * time.Minute)
	makes("paid", 3, "")
	b.passes(23 * time.Hour)
	makes("within a day", 3, "")
	b.x.set("ext.first", extensions.Facts{Unfit: []string{"billing is overdue again"}})
	b.passes(2 * time.Hour)
	makes("after it", 4, "billing is overdue again")
}

// A probe is everybody's who waits for it: one who leaves neither ends it nor waits on, and its result counts for the next.
func TestAProbeOutlivesTheCallerThatLeaves(t *testing.T) {
	t.Parallel()
	b := newFacts(t, extensions.PlaceAccount, twoBindings("", ""))
	b.x.set("ext.first", extensions.Facts{Unfit: []string{"billing is overdue"}})
	b.x.hold = make(chan struct{})
	req := engine.Request{Profile: "profile.first", Name: "one"}
	for range 2 { // who began it, and who waits for it
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		began := time.Now()
		if _, err := b.Create(ctx, req, nil, nil); err == nil || time.Since(began) > 30*time.Second {
			t.Errorf("it came to %s after %s", told(err), time.Since(began))
		}
	}
	close(b.x.hold)
	if _, err := b.makes(req); !strings.Contains(told(err), "billing is overdue") {
		t.Errorf("the next caller heard %s", told(err))
	}
	b.x.asked(t, "ext.first", 1)
}
