package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// newStopping has a vendor, ext.stopping, where a paused sandbox's deadline stops; the user's own key pays.
func newStopping(t *testing.T) *bench {
	t.Helper()
	return newBench(t, onFiles(map[string]string{
		"extensions/ext.stopping.yaml": "id: ext.stopping\nhandler: saas-stub\nconfig: { dir: \"$VENDOR\", plan: trial }\ncost: { per_hour: \"1.00 USD\" }\n",
		"profiles/profile.s.yaml":      profile("profile.s", "extension: ext.stopping\n"),
	}), func(b *bench) { b.profile = "profile.s" })
}

func TestARunEndsAnOverduePausedSandboxWhereItsDeadlineStopped(t *testing.T) {
	t.Parallel()
	b := newStopping(t)
	s := b.create(engine.Request{Name: "short", TTL: "5m", Billing: "byok"})
	if s.Expiry != "native" {
		t.Errorf("running, it is ended by %s", s.Expiry)
	}
	s = b.mode(b.Engine, s, engine.Paused)
	if got, err := b.Get(t.Context(), s.Receipt); err != nil || s.Expiry != "sweep" || got.Expiry != "sweep" {
		t.Errorf("paused, it is ended by %s, a read says %s, %v", s.Expiry, got.Expiry, err)
	}
	b.Engine = b.later(10 * time.Minute)
	if len(b.alive()) != 1 {
		t.Fatal("the vendor ended it")
	}
	if got, err := b.Get(t.Context(), s.Receipt); err != nil || got.State != "expired" || got.Mode != "" {
		t.Errorf("it is shown as %s, %q, %v", got.State, got.Mode, err)
	}
	other := b.create(engine.Request{Name: "other", TTL: "5m", Billing: "byok"})
	if there := b.alive(); len(there) != 1 || there[0] != string(other.ID) {
		t.Errorf("%v are there", there)
	}
	b.end(other)
	b.clean()
}

func TestADeadlineThatStoppedIsTheLedgersUntilTheResume(t *testing.T) {
	t.Parallel()
	b := newStopping(t)
	s := b.create(engine.Request{Name: "one", TTL: "5m", Billing: "byok"})
	s = b.mode(b.Engine, s, engine.Paused)
	for _, ttl := range []time.Duration{40 * time.Minute, 20 * time.Minute} { // the vendor itself moves one only later
		req := s.Request
		req.TTL = ttl.String()
		if _, err := b.PlanUpdate(t.Context(), s.Receipt, s.Request, req); err != nil {
			t.Errorf("%s, planned: %s", ttl, told(err))
		}
		longer, err := b.Update(t.Context(), s.Receipt, req, nil)
		if err != nil || longer.Mode != "paused" || !longer.ExpiresAt.Equal(s.CreatedAt.Add(ttl)) {
			t.Fatalf("%s: it ends at %s, %s", ttl, longer.ExpiresAt, told(err))
		}
		s = longer
	}
	s = b.mode(b.Engine, s, engine.Running)
	if o := b.object(); o.Deadline.Sub(s.ExpiresAt).Abs() > time.Millisecond || s.Expiry != "native" {
		t.Errorf("resumed, the vendor ends it at %s, want %s, by %s", o.Deadline, s.ExpiresAt, s.Expiry)
	}
	b.end(s)
	b.clean()
}

func TestPlatformCreditPaysForNoPausedSandboxWithoutAnEnd(t *testing.T) {
	t.Parallel()
	b := newStopping(t)
	b.grant(20 * dollar)
	b.refused(b.Engine, engine.Request{Profile: b.profile, Name: "one", TTL: "5m", DesiredMode: "paused"}, extensions.KindUnsupported, "the cost has no limit")
	s := b.create(engine.Request{Name: "one", TTL: "5m"})
	req := s.Request
	req.DesiredMode = "paused"
	_, planned := b.PlanUpdate(t.Context(), s.Receipt, s.Request, req)
	_, asked := b.SetMode(t.Context(), s.Receipt, engine.Paused, nil)
	for what, err := range map[string]error{"planned": planned, "asked for": asked} {
		if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(told(err), "platform credit") {
			t.Errorf("%s: %s", what, told(err))
		}
	}
	if b.object().State != vendor.StateRunning {
		t.Error("it was paused")
	}
	b.end(s)
	b.clean()
	if held := b.balance(ledger.AccountWallet).DebitsPending; held != 0 {
		t.Errorf("%d are still held", held)
	}
}
