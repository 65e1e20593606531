package engine_test

import (
	"context"
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func total(t *testing.T, cs []engine.Charge) *big.Rat {
	t.Helper()
	sum := new(big.Rat)
	for _, c := range cs {
		n, ok := new(big.Rat).SetString(c.Amount)
		if !ok {
			t.Fatalf("amount %q", c.Amount)
		}
		sum.Add(sum, n)
	}
	return sum
}

func TestAMeterRunsFromTheVendorsStartToTheVendorsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	b.script(saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoSlowReady, Delay: vendor.Duration(400 * time.Millisecond)})
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one"})
	o := b.observations()[0]
	m := b.meters(s.ID)
	if len(m) != 1 || !m[0].Open() || !m[0].OpenedAt.Equal(o.StartedAt.Truncate(time.Microsecond)) || m[0].StartSource != "backend" {
		t.Fatalf("meter %+v, the vendor started at %s", m, o.StartedAt)
	}
	if !s.Receipt.StartedAt.Equal(m[0].OpenedAt) {
		t.Errorf("the receipt says %s, the meter %s", s.Receipt.StartedAt, m[0].OpenedAt)
	}
	r, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m = b.meters(s.ID)
	if m[0].Open() || m[0].EndSource != "backend" || m[0].EndEstimated || !m[0].ClosedAt.Equal(r.EndedAt.Truncate(time.Microsecond)) {
		t.Errorf("closed %+v, ended %s", m[0], r.EndedAt)
	}
	again, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	if err != nil || !again.AlreadyGone || total(t, again.Charges).Cmp(total(t, r.Charges)) != 0 {
		t.Errorf("destroyed again: %+v, %v; charged before: %v", again, err, r.Charges)
	}
	b.clean()
}

func TestALifeToItsEndCostsWhatWasQuotedForIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	req := engine.Request{Profile: "profile.stub", Name: "one", TTL: "2h"}
	p, err := b.Plan(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	s := b.create(req)
	// The vendor's clock goes two hours ahead: it has ended at its deadline.
	if err := vendor.At(b.StateDir + "/saas-stub").Advance(2 * time.Hour); err != nil {
		t.Fatal(err)
	}
	b.Now = func() time.Time { return time.Now().Add(2*time.Hour + time.Second) }
	e := b.reopen()
	r, err := e.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The vendor starts a moment after our deadline was fixed, and bills by the
	// second: at most one second less than the whole life.
	want, _ := new(big.Rat).SetString(p.Estimate.Maximum)
	diff := new(big.Rat).Sub(want, total(t, r.Charges))
	second, _ := new(big.Rat).SetString("0.0000163")
	if diff.Sign() < 0 || diff.Cmp(second) > 0 {
		t.Errorf("quoted %s, charged %v", p.Estimate.Maximum, r.Charges)
	}
	if r.EndedAt.Sub(s.ExpiresAt).Abs() > time.Second {
		t.Errorf("ended %s, due %s", r.EndedAt, s.ExpiresAt)
	}
	if row, err := e.Lookup(ctx, s.ID, "", ""); err != nil || row.Reason != "expired" {
		t.Errorf("why it ended: %q, %v", row.Reason, err)
	}
	b.clean()
}

// removed is what somebody ends behind our back, at whichever place.
func (b *bench) removed(x extensions.Extension) {
	b.t.Helper()
	ctx := context.Background()
	be, err := x.Open(ctx, extensions.Config{Binding: "x", Account: "acme/web", StateDir: b.StateDir})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, o := range b.observations() {
		if _, err := be.Teardown(ctx, o.Handle); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := be.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// A vendor's bill may count up to its deadline, or to when it was found gone;
// what was seen of it last is the least it can be.
func TestAnEndThatNobodyToldIsBoundedFromAboveWhereAVendorSendsABill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		later, end time.Duration
		source     string
	}{
		"before its deadline": {20 * time.Minute, 20 * time.Minute, "ours"},
		"after its deadline":  {3 * time.Hour, 2 * time.Hour, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx := context.Background()
			s := b.create(engine.Request{Profile: "profile.stub", Name: "one", TTL: "2h"})
			b.sh(s.Receipt, "true") // last seen alive
			b.removed(saasstub.New())
			b.Now = func() time.Time { return s.CreatedAt.Add(c.later) }
			e := b.reopen()
			if r, err := e.Sweep(ctx, false, nil); err != nil || len(r.Settled) != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			m := b.meters(s.ID)
			if len(m) != 1 || !m[0].EndEstimated || m[0].EndSource != c.source || m[0].ClosedAt.Sub(s.CreatedAt.Add(c.end)).Abs() > time.Second {
				t.Errorf("closed %s by %s, estimated %t", m[0].ClosedAt, m[0].EndSource, m[0].EndEstimated)
			}
			v, err := e.Verify(ctx, engine.Evidence{})
			if err != nil || len(v.Findings) > 0 || !strings.Contains(strings.Join(v.Notes, "\n"), "1 of 1") {
				t.Errorf("verified: %+v, %v", v, err)
			}
		})
	}
}

func TestAnEndThatNobodyToldAtAPlaceOfOnesOwnIsWhenItWasLastSeen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.quickstart", Name: "one", TTL: "2h"})
	seen := time.Now()
	b.sh(s.Receipt, "true")
	b.removed(local.New())
	b.Now = func() time.Time { return s.CreatedAt.Add(20 * time.Minute) }
	if r, err := b.reopen().Sweep(ctx, false, nil); err != nil || len(r.Settled) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	m := b.meters(s.ID)
	if len(m) != 1 || !m[0].EndEstimated || m[0].EndSource != "seen-alive" || m[0].ClosedAt.Sub(seen).Abs() > 10*time.Second {
		t.Errorf("closed %s by %s, estimated %t", m[0].ClosedAt, m[0].EndSource, m[0].EndEstimated)
	}
	b.clean()
}

// A destroy that died had ended it; it had run until then.
func TestWhatAKilledDestroyEndedAtAPlaceOfOnesOwnIsChargedUntilThen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Profile: "profile.quickstart", Name: "one", TTL: "2h"})
	time.Sleep(time.Second) // since it was last seen
	from := time.Now().Truncate(time.Microsecond)
	b.run(order{Do: "destroy", Receipt: s.Receipt}, failpointtest.Env+"=engine.destroy.torn:kill", 0)
	to := time.Now()
	b.Now = func() time.Time { return to.Add(20 * time.Minute) }
	if err := b.reopen().Recover(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	m := b.meter(s.ID)
	if !m.EndEstimated || m.ClosedAt.Before(from) || m.ClosedAt.After(to) {
		t.Errorf("closed %s by %s, estimated %t; the destroy was between %s and %s", m.ClosedAt, m.EndSource, m.EndEstimated, from, to)
	}
	b.clean()
}

// Its create died, and so did the sandbox, before anybody saw it alive.
func TestWhatWasNeverSeenAliveAtAPlaceOfOnesOwnCostsNoTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(order{Do: "create", Profile: "profile.quickstart", Name: "one", TTL: "2h"}, failpointtest.Env+"=engine.create.handle:kill", 0)
	id := b.rows()[0].ID
	b.removed(local.New())
	later := time.Now().Add(20 * time.Minute)
	b.Now = func() time.Time { return later }
	if r, err := b.reopen().Sweep(context.Background(), false, nil); err != nil || len(r.Failures) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	m := b.meter(id)
	if !m.EndEstimated || m.EndSource != "seen-alive" || !m.ClosedAt.Equal(m.OpenedAt) {
		t.Errorf("from %s to %s by %s, estimated %t", m.OpenedAt, m.ClosedAt, m.EndSource, m.EndEstimated)
	}
	b.clean()
}

func TestALocalSandboxThatEndedUnwatchedIsSettledAtItsTrueEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	rec, stderr, code := b.run(order{Do: "create", Profile: "profile.quickstart", Name: "one", TTL: "15s"}, "", 0)
	if code != 0 {
		t.Fatal(stderr)
	}
	time.Sleep(time.Until(rec.ExpiresAt) + 2*time.Second)
	seen := b.observations()[0]
	if seen.Phase != extensions.PhaseExpired {
		t.Fatalf("it is %s", seen.Phase)
	}
	e := b.reopen()
	if got, err := e.Get(ctx, rec); err != nil || got.State != "expired" {
		t.Errorf("get: %s, %v", got.State, err)
	}
	r, err := e.Sweep(ctx, false, nil)
	if err != nil || len(r.Ended)+len(r.Settled) != 1 || len(r.Failures) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	m := b.meters(rec.ID)
	if len(m) != 1 || m[0].EndEstimated || !m[0].ClosedAt.Equal(seen.EndedAt.Truncate(time.Microsecond)) {
		t.Errorf("closed %+v, it ended at %s", m, seen.EndedAt)
	}
	if got, err := e.Get(ctx, rec); err != nil || got.State != "expired" {
		t.Errorf("settled, it reads as %s, %v", got.State, err)
	}
	b.clean()
}

func TestAReceiptSettlesElsewhereAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one",
		Secrets: map[string]engine.Secret{"K": extensions.NewSecret("canary-receipt")}})
	rec := s.Receipt
	if rec.Prices == "" || rec.Ledger == "" || rec.Head == "" || rec.StartedAt.IsZero() || rec.Version != 1 {
		t.Fatalf("receipt %+v", rec)
	}
	if _, findings, err := verifyLedger(ctx, b.Engine, rec.Head); err != nil || len(findings) > 0 {
		t.Errorf("its head is not in the chain: %v, %v", findings, err)
	}
	forged := rec.Head[:len(rec.Head)-1] + "0"
	if strings.HasSuffix(rec.Head, "0") {
		forged = rec.Head[:len(rec.Head)-1] + "1"
	}
	if _, findings, err := verifyLedger(ctx, b.Engine, forged); err != nil || len(findings) == 0 {
		t.Errorf("a forged head is found in the chain: %v", err)
	}
	if _, _, err := verifyLedger(ctx, b.Engine, "nonsense"); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("nonsense: %v", err)
	}
	// Others work with the same ledger; reading again changes no byte of it.
	b.create(engine.Request{Profile: "profile.stub", Name: "two"})
	b.sh(rec, "true")
	want, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]*engine.Engine{"here": b.reopen(), "elsewhere": b.elsewhere()} {
		got, err := e.Get(ctx, rec)
		text, jerr := json.Marshal(got.Receipt)
		if err != nil || jerr != nil || string(text) != string(want) {
			t.Errorf("%s it reads\n%s\nand was\n%s (%v)", name, text, want, err)
		}
	}
	if strings.Contains(string(want), "canary") {
		t.Error("the receipt holds the secret")
	}
	r, err := b.elsewhere().Destroy(ctx, rec, engine.DestroyOptions{})
	if err != nil || len(r.Charges) < 2 || r.EndedAt.IsZero() {
		t.Errorf("elsewhere: %+v, %v", r, err)
	}
}

func TestChargesAreOfTheUserWhereTheKeyIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one", Billing: "byok"})
	r, err := b.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{})
	if err != nil || len(r.Charges) == 0 {
		t.Fatal(r, err)
	}
	for _, c := range r.Charges {
		if !c.Memo {
			t.Errorf("%+v is charged to a wallet", c)
		}
	}
	if _, err := os.Stat(b.StateDir + "/unsettled"); err == nil {
		t.Error("a settled end was noted for later")
	}
}
