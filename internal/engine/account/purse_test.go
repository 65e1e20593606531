package account

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

func purse(t *testing.T, limit string) *Purse {
	t.Helper()
	p, err := NewPurse(limit)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAPurseSetsAsideTheWorstCaseAndTakesWhatWasSpent(t *testing.T) {
	t.Parallel()
	p := purse(t, "1.00 USD")
	a, b := p.Hold("0.60", "USD"), p.Hold("0.60", "USD")
	if a.Limit().String() != "0.60 USD" || b.Limit().String() != "0.40 USD" || p.Left().String() != "0.00 USD" {
		t.Errorf("%s, %s, left %s", a.Limit(), b.Limit(), p.Left())
	}
	a.Spend([][2]string{{"0.10", "USD"}, {"0.05", "USD"}, {"0.00", "EUR"}})
	b.Spend(nil)
	if p.Left().String() != "0.85 USD" {
		t.Errorf("left %s", p.Left())
	}
	a.Spend(nil)
	if p.Left().String() != "0.85 USD" {
		t.Errorf("left %s after a second end", p.Left())
	}
}

func TestAPurseKeepsAsideWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for name, spent := range map[string][][2]string{
		"unknown": {{"0.01", "USD"}, {"", "USD"}}, "another currency": {{"0.01", "EUR"}}, "no number": {{"x", "USD"}},
	} {
		p := purse(t, "1.00 USD")
		p.Hold("0.30", "USD").Spend(spent)
		if p.Left().String() != "0.70 USD" {
			t.Errorf("%s: left %s", name, p.Left())
		}
	}
	for name, worst := range map[string][2]string{"unknown": {"", "USD"}, "another currency": {"0.10", "EUR"}} {
		p := purse(t, "1.00 USD")
		if s := p.Hold(worst[0], worst[1]); s.Limit().String() != "1.00 USD" || p.Left().Amount != 0 {
			t.Errorf("%s: set aside %s", name, s.Limit())
		}
	}
	if _, err := NewPurse("1.00"); err == nil {
		t.Error("a limit without a currency was taken")
	}
}

func TestNoOrderOfCallsExceedsAPurse(t *testing.T) {
	t.Parallel()
	p := purse(t, "1.00 USD")
	var mu sync.Mutex
	var all sync.WaitGroup
	var spent meter.Amount
	for range 40 {
		all.Go(func() {
			s := p.Hold(meter.Amount(rand.Int64N(200_000_000)).String(), "USD")
			used := meter.Amount(rand.Int64N(int64(s.Limit().Amount) + 1))
			mu.Lock()
			spent += used
			mu.Unlock()
			s.Spend([][2]string{{used.String(), "USD"}})
		})
	}
	all.Wait()
	if left := p.Left().Amount; left+spent != 1_000_000_000 {
		t.Errorf("spent %s, left %s", spent, left)
	}
}
