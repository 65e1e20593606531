package ledger

import (
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Ceiling bounds how fast sandboxes are begun or money is spent, so that a
// loop ends. It is counted in the transaction that begins, so that runs at
// once cannot pass it together.
type Ceiling struct {
	Source string // who says so, for messages: "policy.acme"
	// Scope is whose sandboxes count: "org/workspace", or all of an "org".
	Scope string
	// Currency tells what Max counts: nano-units of it that were spent in the
	// last Per or are set aside now, places of the user's own apart; "" = the
	// sandboxes that were begun or made anew in the last Per, whatever became
	// of them.
	Currency string
	Max      int64
	Per      time.Duration
	Metered  bool // count only sandboxes that somebody sends a bill for
}

// TooFast says which ceiling refuses, and when it will not. It arrives as
// KindExhausted with RetryAfter.
type TooFast struct{ Pace }

func (e *TooFast) Error() string {
	var beside string
	if e.Beside > 0 {
		beside = fmt.Sprintf(", and %d more are in this plan", e.Beside)
	}
	text := fmt.Sprintf("%d sandboxes were begun for %s in the last %s%s (limit: %s of %s)", e.Count, e.Scope, shortDuration(e.Per), beside,
		fmt.Sprintf("%d per %s", e.Max, shortDuration(e.Per)), e.Source)
	if e.Currency != "" {
		if e.Beside > 0 {
			beside = fmt.Sprintf(" beside %s for others of this plan", meter.Amount(e.Beside))
		}
		text = fmt.Sprintf("needs %s %s%s, and %s has spent or set aside %s in the last %s (limit: %s per %s of %s)", meter.Amount(e.Need), e.Currency, beside,
			e.Scope, meter.Amount(e.Count), shortDuration(e.Per), meter.Amount(e.Max), shortDuration(e.Per), e.Source)
	}
	if e.Next.IsZero() {
		return text
	}
	return text + "; the next is possible at " + e.Next.UTC().Format(time.RFC3339) + ", in " + shortDuration(e.wait())
}

// wait is rounded up to seconds, at least one.
func (e *TooFast) wait() time.Duration {
	return max(time.Second, (e.Next.Sub(e.At) + time.Second - 1).Truncate(time.Second))
}

func (e *TooFast) refusal(id extensions.ID) error {
	out := failure(extensions.KindExhausted, string(id), e)
	if e.Beside > 0 {
		return out.WithRemedy("apply fewer at once (`terraform apply -target`), or have the ceiling raised")
	}
	if e.Next.IsZero() {
		return out.WithRemedy("end what is not needed, or have the ceiling raised")
	}
	out.RetryAfter = e.wait()
	return out.WithRemedy("wait, or have the ceiling raised; if a loop makes these, end it")
}

// Refusal is that of a begin or change that needs as much as the pace was asked
// for; nil where there is room.
func (p Pace) Refusal(id extensions.ID) error {
	if p.Fits() {
		return nil
	}
	return (&TooFast{p}).refusal(id)
}

func (c Ceiling) validate() error {
	if c.Max < 0 || c.Per <= 0 || StreamOf(c.Scope) == "" {
		return failuref(extensions.KindInvalid, "the ceiling of %s is negative, has no time or no scope", c.Source)
	}
	return nil
}

// ceilings checks all of them; begins says that one more sandbox is begun.
// The caller has the org's lock.
func (t *tx) ceilings(row Sandbox, all []Ceiling, r *Reserve, begins bool) error {
	n := counter{ctx: t.ctx, store: t.store, sql: t.sql, now: t.now}
	for _, c := range all {
		var need int64
		switch {
		case c.Currency == "" && !begins:
			continue
		case c.Currency != "":
			if need = r.counts(c); need == 0 {
				continue
			}
		}
		p, err := n.pace(c, need, r != nil && r.Total, row.ID)
		if err == nil {
			err = p.Refusal(row.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// counts is what of a reservation a ceiling of money counts.
func (r *Reserve) counts(c Ceiling) int64 {
	if r == nil || r.Currency != c.Currency || r.Memo == AccountInfra {
		return 0
	}
	return r.Amount
}
