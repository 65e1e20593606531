package engine_test

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// prices is a price book of a binding, with components.
func prices(binding, components string) string {
	return "id: prices.mine\nextension: " + binding +
		"\nversion: \"1\"\nas_of: \"2026-10-01\"\nsource: a test\ncurrency: USD\nconfidence: exact\nbilling: wall-clock\n" +
		"components:\n" + components
}

const (
	freeHours = "  - { component: sandbox, unit: sandbox-hour, price: \"1\", included: 100 }\n  - { component: egress, unit: egress-gb, " +
		"price: \"0.10\" }\n"
	gigabyte = 1_000_000_000
)

// Credit pays for what nobody could foresee, also where the worst case was
// nothing; and who came to credit since does not.
func TestCreditPaysForWhatAFreeWorstCaseDidNotForesee(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]string{"prices/mine.yaml": prices("ext.mine", freeHours)}, func(t *testing.T, b *bench) {
		before := b.create(engine.Request{Name: "before"})
		b.grant(dollar)
		after := b.create(engine.Request{Name: "after"})
		own := b.create(engine.Request{Name: "own", Billing: "byok"})
		for _, s := range []engine.Sandbox{before, after, own} {
			if held := b.held(s.ID); held != 0 {
				t.Errorf("%s: %d are held for what is free", s.Name, held)
			}
			sent(t, b.vendor, s.Name, 3*gigabyte)
		}
		// A later end is paid for as the beginning was.
		later := engine.Request{Profile: "profile.mine", Name: "before", TTL: "2h"}
		if _, err := b.Update(t.Context(), before.Receipt, later, nil); err != nil {
			t.Fatal(told(err))
		}
		for s, kind := range map[*engine.Sandbox]string{&before: ledger.AccountBYOK, &after: ledger.AccountWallet, &own: ledger.AccountBYOK} {
			posted := b.balance(kind).DebitsPosted
			b.end(*s)
			if now := b.balance(kind).DebitsPosted; now != posted+3*dollar/10 {
				t.Errorf("%s: %s went from %d to %d", s.Name, kind, posted, now)
			}
			for _, c := range chargesOf(t, b.book(), s.ID) {
				if (c.Memo == "") != (kind == ledger.AccountWallet) {
					t.Errorf("%s: charged %+v", s.Name, c)
				}
			}
		}
		b.pays("settled", 7*dollar/10, 0, 3*dollar/10)
		// What the wallet has not is owed.
		last := b.create(engine.Request{Name: "last"})
		sent(t, b.vendor, "last", 9*gigabyte)
		b.end(last)
		b.pays("more than there was", 0, 0, dollar)
		if owed := b.balance(ledger.AccountReceivable).Owed(); owed != 2*dollar/10 {
			t.Errorf("%d are owed", owed)
		}
	})
}

// sent makes the vendor's object of a sandbox send bytes.
func sent(t *testing.T, dir, sandbox string, bytes int64) {
	t.Helper()
	v := vendor.At(dir)
	all, err := v.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if o.Title == sandbox {
			if err := v.Send(o.Name, bytes); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("the vendor has no %s: %+v", sandbox, all)
}

func chargesOf(t *testing.T, l *ledger.Ledger, id engine.ID) []ledger.Charge {
	t.Helper()
	cs, err := l.Charges(t.Context(), id)
	if err != nil || len(cs) == 0 {
		t.Fatalf("%+v, %v", cs, err)
	}
	return cs
}

// An earlier end leaves set aside what a create with that ttl would need, to the
// nano-unit; another one has room for the rest at once.
func TestAnEarlierEndLeavesItsOwnWorstCase(t *testing.T) {
	t.Parallel()
	const odd = "  - { component: sandbox, unit: sandbox-hour, price: \"0.117333333333\", increment: 1s }\n"
	onBoth(t, map[string]string{"prices/mine.yaml": prices("ext.mine", odd)}, func(t *testing.T, b *bench) {
		const worst = 117_333_334 // of an hour, rounded up
		b.grant(dollar)
		b.budget("all", 3*worst+10, true) // what is added to what is set aside is rounded up once more
		s := b.create(engine.Request{Name: "one", TTL: "3h"})
		until := func(ttl string) {
			t.Helper()
			got, err := b.Update(t.Context(), s.Receipt, engine.Request{Profile: "profile.mine", Name: "one", TTL: ttl}, nil)
			if err != nil {
				t.Fatal(told(err))
			}
			s = got
		}
		until("1h")
		b.pays("an hour", dollar-worst, worst, 0)
		if r := b.theBudget("all").Reserved; r != worst {
			t.Errorf("the budget holds %d", r)
		}
		two := b.create(engine.Request{Name: "two", TTL: "1h"})
		b.pays("another one", dollar-2*worst, 2*worst, 0)
		until("2h")
		until("1h30m")
		b.budget("all", 1, true) // less than is set aside by now: an earlier end is refused by nothing
		until("1h")
		b.pays("an hour again", dollar-2*worst, 2*worst, 0)
		b.end(two, s)
	})
}
