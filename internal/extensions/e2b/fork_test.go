package e2b_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/e2btest"
)

// What a kill leaves of a fork, its snapshot too, is found by the fork's id and ended by its teardown; the same create
// again makes it once.
func TestAKillAtAnyRequestOfAForkLeavesNothing(t *testing.T) {
	t.Parallel()
	v := e2btest.Start(t)
	k := v.Killer(t)
	here := task{API: v.APIURL, Sandbox: v.SandboxURL, Key: v.Key, ID: must1(extensions.NewID(nil))}
	b, err := e2b.New().Open(t.Context(), here.config())
	must(t, err)
	defer func() { must(t, b.Close()) }()
	source, _, err := b.Provision(t.Context(), here.spec())
	must(t, err)
	must(t, b.(extensions.Extender).Extend(t.Context(), source, time.Now().Add(20*time.Hour))) // claims pass meanwhile
	_, err = b.WaitReady(t.Context(), here.spec(), source)
	must(t, err)
	find := e2b.New().Describe().Find
	claimed := find.Claim + find.Settle
	for _, c := range []struct{ again, after bool }{{false, false}, {false, true}, {true, true}} {
		again, after, n := c.again, c.after, int64(1)
		for killed := true; killed; n++ {
			w := task{API: k.APIURL, Sandbox: k.SandboxURL, Key: v.Key, ID: must1(extensions.NewID(nil)), Fork: source.Encode()}
			killed = k.Run(t, w, n, after)
			var h extensions.Handle
			if again {
				h, _, err = b.Provision(t.Context(), w.spec())
			} else {
				h, err = b.Find(t.Context(), w.ID)
			}
			if err == nil {
				if made := len(v.Sandboxes()); made > 2 {
					t.Errorf("killed at request %d (done: %t): %d sandboxes", n, after, made)
				}
				_, err = b.Teardown(t.Context(), h)
				if h.Ref == "" { // it is not listed, and that proves nothing before its first deadline
					if !extensions.IsKind(err, extensions.KindIndeterminate) {
						t.Fatalf("killed at request %d (done: %t): the teardown of what is not listed: %v", n, after, err)
					}
					v.Clock().Advance(claimed)
					_, err = b.Find(t.Context(), w.ID)
					if !extensions.IsKind(err, extensions.KindIndeterminate) {
						t.Fatalf("killed at request %d (done: %t): found again: %v", n, after, err)
					}
				} else {
					must(t, err)
				}
			} else if again || !extensions.IsKind(err, extensions.KindIndeterminate) {
				t.Fatal(err)
			}
			if boxes, kept := v.Sandboxes(), v.Snapshots(); len(boxes) != 1 || len(kept) != 0 {
				t.Fatalf("killed at request %d (done: %t): %d sandboxes and %d snapshots are left", n, after, len(boxes), len(kept))
			}
		}
		if n < 8 {
			t.Errorf("a fork makes only %d requests", n)
		}
	}
}

// A fork that is refused leaves no snapshot, and one that ended by itself takes its snapshot along when it is settled.
func TestTheSnapshotOfAForkGoesWithIt(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	b, err := e2b.New().Open(t.Context(), cfg)
	must(t, err)
	defer func() { must(t, b.Close()) }()
	w := task{ID: must1(extensions.NewID(nil))}
	source, _, err := b.Provision(t.Context(), w.spec())
	must(t, err)
	fork := task{ID: must1(extensions.NewID(nil)), Fork: source.Encode()}
	v.Inject(e2btest.Fault{On: "POST /sandboxes", Status: http.StatusTooManyRequests, Body: `{"code":429,"message":"too many"}`})
	h, _, err := b.Provision(t.Context(), fork.spec())
	if !extensions.IsKind(err, extensions.KindExhausted) || !h.IsZero() || len(v.Snapshots()) != 0 {
		t.Errorf("refused: %s, %v, %d snapshots", h.Encode(), err, len(v.Snapshots()))
	}
	h, _, err = b.Provision(t.Context(), fork.spec())
	must(t, err)
	must(t, v.Vanish(h.Ref))
	if _, err := b.Teardown(t.Context(), h); err != nil || len(v.Snapshots()) != 0 {
		t.Errorf("gone: %v, %d snapshots", err, len(v.Snapshots()))
	}
	_, err = b.Teardown(t.Context(), source)
	must(t, err)
}

// A fork whose deadline passes while its turn or its snapshot takes time is not asked for, and leaves nothing.
func TestAForkThatComesTooLateIsNotMade(t *testing.T) {
	t.Parallel()
	cfg := at(t)
	v := vendorOf(cfg)
	b, err := e2b.New().Open(t.Context(), cfg)
	must(t, err)
	defer func() { must(t, b.Close()) }()
	source, _, err := b.Provision(t.Context(), task{ID: must1(extensions.NewID(nil))}.spec())
	must(t, err)
	const take = "POST /sandboxes/{sandboxID}/snapshots"
	v.Inject(e2btest.Fault{On: take, Pass: true, Delay: 1200 * time.Millisecond})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			spec := task{ID: must1(extensions.NewID(nil)), Fork: source.Encode()}.spec()
			spec.Deadline = time.Now().Add(time.Second)
			h, _, err := b.Provision(t.Context(), spec)
			if !extensions.IsKind(err, extensions.KindUnavailable) || extensions.RemedyOf(err) == "" || !h.IsZero() {
				t.Errorf("%s, %v", h.Encode(), err)
			}
		})
	}
	all.Wait()
	asked := map[string]int{}
	for _, r := range v.Requests() {
		asked[r.On]++
	}
	if asked[take] != 1 || asked["POST /sandboxes"] != 1 {
		t.Errorf("%d snapshots and %d creates were asked for", asked[take], asked["POST /sandboxes"])
	}
	if kept := v.Snapshots(); len(kept) != 0 {
		t.Errorf("%d snapshots are left", len(kept))
	}
}

// A fork that is not listed yet is not gone: its snapshot stays with it, and it is found and ended once it is listed, or
// ends by itself at its first deadline.
func TestAForkThatIsNotListedIsNotGone(t *testing.T) {
	t.Parallel()
	find := e2b.New().Describe().Find
	for name, late := range map[string]time.Duration{"listed late": find.Settle, "never listed": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := at(t)
			v := vendorOf(cfg)
			b, err := e2b.New().Open(t.Context(), cfg)
			must(t, err)
			defer func() { must(t, b.Close()) }()
			source, _, err := b.Provision(t.Context(), task{ID: must1(extensions.NewID(nil))}.spec())
			must(t, err)
			v.SetListDelay(late)
			v.Inject(e2btest.Fault{On: "POST /sandboxes", When: e2btest.After})
			fork := task{ID: must1(extensions.NewID(nil)), Fork: source.Encode()}.spec()
			if h, _, err := b.Provision(t.Context(), fork); !extensions.IsKind(err, extensions.KindIndeterminate) || h.Ref != "" {
				t.Fatalf("%s, %v", h.Encode(), err)
			}
			h, err := b.Find(t.Context(), fork.ID)
			must(t, err)
			r, err := b.Teardown(t.Context(), h)
			if !extensions.IsKind(err, extensions.KindIndeterminate) || r.AlreadyGone || len(v.Sandboxes()) != 2 {
				t.Errorf("a fork that is not listed: %+v, %v, %d sandboxes", r, err, len(v.Sandboxes()))
			}
			v.Clock().Advance(max(min(late, find.Claim), find.Settle) + find.Settle)
			h, err = b.Find(t.Context(), fork.ID)
			must(t, err)
			_, err = b.Teardown(t.Context(), h)
			if listed := late < find.Claim; listed && err != nil || !listed && !extensions.IsKind(err, extensions.KindIndeterminate) {
				t.Errorf("its teardown later: %v", err)
			}
			if boxes, kept := v.Sandboxes(), v.Snapshots(); len(boxes) != 1 || len(kept) != 0 {
				t.Errorf("%d sandboxes and %d snapshots are left", len(boxes), len(kept))
			}
			if _, err := b.Find(t.Context(), fork.ID); !extensions.IsKind(err, extensions.KindIndeterminate) {
				t.Errorf("found again: %v", err)
			}
			_, err = b.Teardown(t.Context(), source)
			must(t, err)
		})
	}
}
