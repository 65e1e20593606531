package tenant_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/tenant"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// forbid lets nobody use the places.
func (h *house) forbid(places ...string) {
	h.permit = func(account string, a tenant.Asked) error {
		if !slices.Contains(places, a.Extension) {
			return nil
		}
		return &extensions.Error{Kind: extensions.KindUnauthorized, Err: &ledger.Forbidden{Account: account, Place: a.Extension, Rule: "permission.extension", Reason: "it is not wanted"}}
	}
}

// anew is a change that makes a sandbox again at a place, for two hours.
func (h *house) anew(s ledger.Sandbox, place string) ledger.Change {
	q := quote(place, perHour(place, 1, place == own))
	return step(s, "anew"+place, ledger.Change{To: lifecycle.Provisioning, NextGeneration: true, Quote: &q, Meter: ledger.MeterOps{Close: &ledger.MeterClose{At: h.now}},
		Patch:  ledger.Patch{TTL: ptr(2 * time.Hour), ExpiresAt: ptr(h.now.Add(2 * time.Hour))},
		Intent: &ledger.OpenIntent{Kind: ledger.IntentRecreate, Holder: holder(s.Account), Supersede: true}})
}

func TestTheOwnersPoliciesAreAskedBeforeAPlaceIsTaken(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(50 * dollar)
	v := h.view(web)
	there := h.at(v, web, vendor)
	other := h.at(v, web, own)
	h.forbid(vendor)
	refused := func(what string, err error) {
		t.Helper()
		var f *ledger.Forbidden
		if !errors.As(err, &f) || f.Place != vendor || f.Account != web || !extensions.IsKind(err, extensions.KindUnauthorized) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := v.Begin(ctx, h.wish(web, vendor))
	refused("a begin", err)
	silent := h.wish(web, vendor)
	silent.Quote = nil
	begun := h.must(v.Begin(ctx, silent))
	_, err = v.Apply(ctx, step(begun, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(vendor)}}))
	refused("a place", err)
	_, err = v.Apply(ctx, h.anew(other, vendor))
	refused("a new life", err)
	_, err = v.Apply(ctx, h.anew(there, vendor))
	refused("a new life where it was", err)
	for what, p := range map[string]ledger.Patch{"another spec": {Spec: json.RawMessage(`{"isolation":"none"}`)}, "who pays": {Request: json.RawMessage(`{"billing":"byok"}`)},
		"another host": {Host: ptr("big")}} {
		_, err = v.Apply(ctx, step(there, what, ledger.Change{Patch: p}))
		refused(what, err)
	}
	// What lives goes on, and ends.
	h.must(v.Apply(ctx, step(there, "seen", ledger.Change{Patch: ledger.Patch{SeenAliveAt: &h.now, Request: json.RawMessage(`{"deletion_protection":false}`)}})))
	h.must(v.Apply(ctx, step(there, "longer", ledger.Change{Patch: ledger.Patch{TTL: ptr(3 * time.Hour), ExpiresAt: ptr(start.Add(3 * time.Hour))}})))
	if _, err := h.end(v, web, there, &ledger.MeterClose{At: h.now}); err != nil {
		t.Error(err)
	}
}

func TestWhatWasDoneBeforeAPolicyIsToldAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	v := h.view(web)
	b := h.wish(web, vendor)
	s := h.must(v.Begin(ctx, b))
	h.forbid(vendor)
	if again, err := v.Begin(ctx, b); err != nil || again.ID != s.ID {
		t.Errorf("%v, %v", again.ID, err)
	}
}

func TestAHostThatAQuoteNamesIsJudgedByItsRef(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	v := h.view(web)
	var heard []tenant.Asked
	h.permit = func(_ string, a tenant.Asked) error {
		heard = append(heard, a)
		return nil
	}
	on := func(host string) ledger.Begin {
		b := h.wish(web, own)
		b.Quote.Body = json.RawMessage(`{"extension":"` + own + `","host":"` + host + `"}`)
		return b
	}
	if _, err := v.PutHost(ctx, ledger.Host{Account: web, Name: "box", Ref: `{"name":"box"}`}); err != nil {
		t.Fatal(err)
	}
	h.must(v.Begin(ctx, on("box")))
	if len(heard) != 1 || heard[0].Host != "box" || heard[0].HostRef != `{"name":"box"}` {
		t.Errorf("a host that is registered: %+v", heard)
	}
	heard = nil
	s := h.must(v.Begin(ctx, on("elsewhere")))
	if len(heard) != 0 {
		t.Errorf("one that is not: %+v", heard)
	}
	h.must(v.Apply(ctx, step(s, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(own), Host: ptr("elsewhere")}})))
	if len(heard) != 1 || heard[0].Host != "elsewhere" {
		t.Errorf("once it is recorded: %+v", heard)
	}
}

func TestANewLifeElsewhereIsPricedThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(10 * dollar)
	v := h.view(web)
	s := h.must(v.Apply(ctx, h.anew(h.at(v, web, own), vendor)))
	if w := h.balance(ledger.AccountWallet); w.DebitsPending < 2*dollar-dollar/100 || w.DebitsPending > 2*dollar {
		t.Errorf("set aside for the new place: %+v", w)
	}
	h.must(v.Apply(ctx, step(s, "place2", ledger.Change{Patch: ledger.Patch{Extension: ptr(vendor)}})))
	if w := h.balance(ledger.AccountWallet); w.DebitsPending < 2*dollar-dollar/100 || w.DebitsPending > 2*dollar {
		t.Errorf("and once it is placed: %+v", w)
	}
}

// What may have run before a new life is paid for like before an end.
func TestANewLifeForgetsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.grant(10 * dollar)
	v := h.view(web)
	s := h.must(v.Begin(ctx, h.wish(web, vendor)))
	s = h.must(v.Apply(ctx, step(s, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(vendor)}})))
	s = h.must(v.Apply(ctx, step(s, "handle", ledger.Change{Patch: ledger.Patch{Handle: &extensions.Handle{Extension: "x", ID: s.ID, Ref: "r"}}})))
	s = h.must(v.Apply(ctx, step(s, "failed", ledger.Change{To: lifecycle.Failed, Finish: &ledger.FinishIntent{Outcome: ledger.Failed}})))
	h.now = h.now.Add(30 * time.Minute)
	if _, err := v.Apply(ctx, h.anew(s, own)); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("at another place: %v", err)
	}
	h.must(v.Apply(ctx, h.anew(s, vendor)))
	if got := h.charged(s.ID); got < dollar/2-10_000 || got > dollar/2+10_000 {
		t.Errorf("charged %d for half an hour", got)
	}
	if w := h.balance(ledger.AccountWallet); w.DebitsPending < 2*dollar-dollar/100 || w.DebitsPending > 2*dollar {
		t.Errorf("set aside for the new life: %+v", w)
	}
}

// What was led without the ledger is over: it is recorded, and marked.
func TestAForbiddenPlaceOfALifeThatIsToldIsMarked(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	v := h.view(web)
	h.forbid(own)
	b := h.wish(web, own)
	b.Event.Data = json.RawMessage(`{"name":"n"}`)
	place := step(ledger.Sandbox{ID: b.ID}, "place", ledger.Change{To: lifecycle.Provisioning, Patch: ledger.Patch{Extension: ptr(own)}})
	h.must(v.Replay(ctx, &b, place))
	h.permit = nil
	fine := h.wish(web, own)
	h.must(v.Replay(ctx, &fine))
	es, err := v.Events(ctx, "acme", 1, 0)
	if err != nil || len(es) != 3 {
		t.Fatalf("%d events, %v", len(es), err)
	}
	for i, marked := range []bool{true, true, false} {
		body := string(es[i].CloudEvent)
		if strings.Contains(body, `"forbidden":"permission.extension"`) != marked || i == 0 && !strings.Contains(body, `"name":"n"`) {
			t.Errorf("event %d: %s", i, body)
		}
	}
}
