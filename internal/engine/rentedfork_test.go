package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/e2btest"
)

// afterTheClaim is past the first deadline of a create, and past the time that a look-up may miss it.
const afterTheClaim = 5 * time.Minute

// A run that dies at any request of a fork leaves its name free at the latest once its first deadline has passed, and
// neither a sandbox nor a snapshot.
func TestAKillAtAnyRequestOfAForkAtAVendorConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	forking := func(t *testing.T) (renting, engine.Sandbox) {
		r := newRented(t)
		return r, r.make(r.reopen(), engine.Request{Profile: "profile.rented", Name: "source", TTL: "1h"})
	}
	r, source := forking(t)
	requests := r.victim(order{Do: "create", Name: "one", Fork: source.ID}, 0, false)
	if requests < 8 {
		t.Fatalf("a fork makes %d requests", requests)
	}
	for n := int64(1); n <= requests; n++ {
		t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
			t.Parallel()
			r, source := forking(t)
			r.victim(order{Do: "create", Name: "one", Fork: source.ID}, n, true)
			create := func(more ...with) (engine.Sandbox, error) {
				e := r.reopen(more...)
				defer e.Close()
				return e.Create(t.Context(), engine.Request{Profile: "profile.rented", Name: "one", FromSandbox: string(source.ID)}, nil, nil)
			}
			s, err := create()
			if extensions.IsKind(err, extensions.KindIndeterminate) {
				r.v.Clock().Advance(afterTheClaim)
				s, err = create(ahead(func() time.Duration { return afterTheClaim }))
			}
			if err != nil && strings.Contains(extensions.RemedyOf(err)+err.Error(), "import {") { // it was whole, and nobody was told
				s, err = r.reopen().Lookup(t.Context(), "", "", "one")
			}
			if err != nil {
				t.Fatalf("the next run: %s", told(err))
			}
			if boxes, kept := r.v.Sandboxes(), r.v.Snapshots(); len(boxes) != 2 || len(kept) != 1 {
				t.Errorf("there are %d sandboxes and %d snapshots, want the source, its fork and the fork's snapshot", len(boxes), len(kept))
			}
			r.destroy(s.Receipt)
			if kept := r.v.Snapshots(); len(kept) > 0 {
				t.Errorf("the fork left the snapshots %v", kept)
			}
			r.destroy(source.Receipt)
			r.settled()
		})
	}
}

// A create whose answer was lost leaves a handle without a name. That holds the sandbox's name until its first deadline
// has passed, and not for ever.
func TestACreateThatNobodyHeardOfFreesItsNameAfterItsClaim(t *testing.T) {
	t.Parallel()
	takesLong(t)
	r := newRented(t)
	r.v.Inject(e2btest.Fault{On: "POST /sandboxes"})
	create := func(more ...with) (engine.Sandbox, error) {
		e := r.reopen(more...)
		defer e.Close()
		return e.Create(t.Context(), engine.Request{Profile: "profile.rented", Name: "one"}, nil, nil)
	}
	for range 2 {
		if _, err := create(); !extensions.IsKind(err, extensions.KindIndeterminate) {
			t.Fatalf("before its first deadline: %v", err)
		}
	}
	r.v.Clock().Advance(afterTheClaim)
	s, err := create(ahead(func() time.Duration { return afterTheClaim }))
	if err != nil {
		t.Fatal(told(err))
	}
	r.destroy(s.Receipt)
	r.settled()
}
