package bank

import (
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Ceiling limits how fast sandboxes begin or money is spent, so that a runaway loop ends. It is counted in
// the transaction that begins, so concurrent runs cannot pass it together.
type Ceiling struct {
	Source string // who set it, for messages: "policy.acme"
	// Scope says whose sandboxes count: "org/workspace", or a whole "org".
	Scope string
	// Currency selects what Max counts. Set: nano-units spent in the last Per or set aside now, without the
	// user's own places. "": sandboxes begun or re-created in the last Per, whatever became of them.
	Currency string
	Max      int64
	Per      time.Duration
	Metered  bool // count only sandboxes that a vendor bills for
}

// TooFast carries the ceiling that refuses, and when it will allow again. It is wrapped in KindExhausted
// with RetryAfter.
type TooFast struct{ Pace }

func (e *TooFast) Error() string {
	var beside string
	if e.Beside > 0 {
		beside = fmt.Sprintf(", and %d more are in this plan", e.Beside)
	}
	text := fmt.Sprintf("%d sandboxes were started for %s in the last %s%s (limit: %s of %s)", e.Count, e.Scope, shortDuration(e.Per),
		beside,
		fmt.Sprintf("%d per %s", e.Max, shortDuration(e.Per)), e.Source)
	if e.Currency != "" {
		if e.Beside > 0 {
			beside = fmt.Sprintf(" in addition to %s for others in this plan", meter.Amount(e.Beside))
		}
		text = fmt.Sprintf("needs %s %s%s, and %s has spent or set aside %s in the last %s (limit: %s per %s of %s)", meter.Amount(e.Need),
			e.Currency, beside,
			e.Scope, meter.Amount(e.Count), shortDuration(e.Per), meter.Amount(e.Max), shortDuration(e.Per), e.Source)
	}
	if e.Next.IsZero() {
		return text
	}
	return text + "; the next is possible at " + e.Next.UTC().Format(time.RFC3339) + ", in " + shortDuration(e.wait())
}

// wait returns the wait rounded up to seconds, at least one.
func (e *TooFast) wait() time.Duration {
	return max(time.Second, (e.Next.Sub(e.At) + time.Second - 1).Truncate(time.Second))
}

func (e *TooFast) refusal(id extensions.ID) error {
	out := fault.New(extensions.KindExhausted, string(id), e)
	if e.Beside > 0 {
		return out.WithRemedy("apply fewer at once (`terraform apply -target`), or ask to raise the ceiling")
	}
	if e.Next.IsZero() {
		return out.WithRemedy("destroy unused sandboxes, or ask to raise the ceiling")
	}
	out.RetryAfter = e.wait()
	return out.WithRemedy("wait, or ask to raise the ceiling; if a loop creates these sandboxes, stop it")
}

// Refusal returns the error for a begin or change that needs what the pace was computed for; nil if there
// is room.
func (p Pace) Refusal(id extensions.ID) error {
	if p.Fits() {
		return nil
	}
	return (&TooFast{p}).refusal(id)
}

// Check returns KindInvalid for a ceiling that limits nothing.
func (c Ceiling) Check() error {
	if c.Max < 0 || c.Per <= 0 || OrgOf(c.Scope) == "" {
		return fault.Errorf(extensions.KindInvalid, "the ceiling of %s is negative, has no time or no scope", c.Source)
	}
	return nil
}

// Need returns how much of a reservation the ceiling counts. begins says that the change begins or
// re-creates a sandbox. asked is false if the ceiling does not apply to the change.
func (c Ceiling) Need(r *Reserve, begins bool) (need int64, asked bool) {
	if c.Currency == "" {
		return 0, begins
	}
	need = r.counts(c)
	return need, need != 0
}

// NeedOf returns the Need of a begin that reserves r; nil stands for the least amount in the currency.
func (c Ceiling) NeedOf(r *Reserve) int64 {
	if c.Currency == "" || r != nil {
		return r.counts(c)
	}
	return 1
}

// counts returns how much of a reservation a money ceiling counts.
func (r *Reserve) counts(c Ceiling) int64 {
	if r == nil || c.Currency == "" || r.Currency != c.Currency || r.Memo == AccountInfra {
		return 0
	}
	return r.Amount
}
