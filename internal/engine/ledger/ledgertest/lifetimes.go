package ledgertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
)

// lifetimes are those of ended sandboxes with a known end, the latest first.
func lifetimes(t *testing.T, l *ledger.Ledger) {
	ctx := context.Background()
	lived := func(name string, change func(*ledger.Begin, *ledger.MeterClose)) {
		b, c := want(newID(t), holderOf(t, l), name), meterClose(Start.Add(time.Hour))
		change(&b, c)
		s := must(l.Begin(ctx, b))(t)
		s = must(l.Apply(ctx, provisioning(s)))(t)
		s = must(l.Apply(ctx, ready(s)))(t) // its meter opens a second after Start
		if name == "paused" {
			s = must(l.Apply(ctx, ledger.Change{ID: s.ID, Key: step(s, "pause"), Expect: ledger.Expect{Fence: s.Fence},
				Meter: ledger.MeterOps{Switch: &bank.MeterSwitch{At: Start.Add(11 * time.Second), Mode: ledger.Paused, Sizes: sizes}}}))(t)
		}
		s = must(l.Apply(ctx, destroying(s, holderOf(t, l))))(t)
		end := destroyed(s)
		end.Meter.Close = c
		must(l.Apply(ctx, end))(t)
	}
	for i := range 3 {
		lived(fmt.Sprint("n", i), func(_ *ledger.Begin, c *ledger.MeterClose) {
			c.At = Start.Add(time.Second + time.Duration(i+1)*time.Minute)
		})
	}
	lived("paused", func(b *ledger.Begin, c *ledger.MeterClose) {
		b.Extension, b.ProfileVersion, c.At = "ext.other", "2.0.0", Start.Add(31*time.Second)
	})
	lived("lost", func(_ *ledger.Begin, c *ledger.MeterClose) { c.Estimated = true })
	lived("theirs", func(b *ledger.Begin, _ *ledger.MeterClose) { b.Account = "acme/other" })
	lived("other", func(b *ledger.Begin, _ *ledger.MeterClose) { b.Profile = "profile.other" })
	made(t, l, "alive")

	of := func(running, paused time.Duration) ledger.Lifetime {
		return ledger.Lifetime{Running: running, Paused: paused}
	}
	all := []ledger.Lifetime{of(3*time.Minute, 0), of(2*time.Minute, 0), of(time.Minute, 0), of(10*time.Second, 20*time.Second)}
	for _, c := range []struct {
		profile, extension string
		newest             int
		want               []ledger.Lifetime
	}{
		{"profile.base", "", 9, all},
		{"profile.base", "", 2, all[:2]},
		{"profile.base", "ext.local", 9, all[:3]},
		{"profile.base", "ext.other", 9, all[3:]},
		{"profile.base", "ext.none", 9, nil},
		{"profile.none", "", 9, nil},
		{"profile.base", "", 0, nil},
	} {
		if d := cmp.Diff(c.want, must(l.Lifetimes(ctx, Account, c.profile, c.extension, c.newest))(t)); d != "" {
			t.Errorf("%s %s %d: -want +got:\n%s", c.profile, c.extension, c.newest, d)
		}
	}
}
