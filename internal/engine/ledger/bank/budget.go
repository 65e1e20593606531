package bank

import (
	"fmt"
	"math"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Budget limits what an account, or a whole org, reserves and spends in a period.
type Budget struct {
	ID       string // set by the ledger
	Account  string // "org" or "org/workspace"
	Name     string
	Currency string
	Limit    int64 // nano-units
	// Hard refuses what would exceed the limit; a soft budget only warns.
	Hard   bool
	Period string // "" = for ever; day | week | month, in UTC; weeks begin on Monday

	Since    time.Time // start of the period
	Reserved int64     // set aside for live sandboxes
	Spent    int64     // in the period
	Over     int64     // part of Spent that exceeded its reservations
}

// NoLimit is the Limit of a removed budget: it limits nothing but keeps counting, since live sandboxes may
// be held in it.
const NoLimit = math.MaxInt64

var periods = map[string]func(time.Time) time.Time{
	"":    func(time.Time) time.Time { return time.Time{} },
	"day": func(t time.Time) time.Time { return t.Truncate(24 * time.Hour) },
	"week": func(t time.Time) time.Time {
		return t.Truncate(24*time.Hour).AddDate(0, 0, -(int(t.Weekday())+6)%7)
	},
	"month": func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) },
}

func periodStart(period string, now time.Time) time.Time { return periods[period](now.UTC()) }

// Check returns KindInvalid for a malformed limit or period.
func (b Budget) Check() error {
	if b.Removed() && b.Hard {
		return fault.Errorf(extensions.KindInvalid, "the hard budget %q has the limit that means no limit",
			b.Name).WithRemedy("give a lower limit")
	}
	if _, known := periods[b.Period]; !known || b.Limit < 0 {
		return fault.Errorf(extensions.KindInvalid, "the budget %q has a negative limit or an unknown period %q", b.Name, b.Period).
			WithRemedy("use day, week, month, or no period")
	}
	return nil
}

// Removed reports whether the budget no longer limits anything.
func (b Budget) Removed() bool { return b.Limit == NoLimit }

// Set returns the budget as it is stored: with its id and the counts of the one that it replaces; old is
// nil for a new one.
func (b Budget) Set(old *Budget, now time.Time) Budget {
	b.ID = BudgetID(b.Account, b.Name, b.Currency)
	b.Since, b.Reserved, b.Spent, b.Over = periodStart(b.Period, now), 0, 0, 0
	if old == nil {
		return b
	}
	was := old.At(now)
	b.Reserved, b.Spent, b.Over = was.Reserved, was.Spent, was.Over
	if b.Period == was.Period {
		b.Since = was.Since
	}
	return b
}

// BudgetID returns the id of an account's budget.
func BudgetID(account, name, currency string) string { return account + ":" + name + ":" + currency }

// At returns the budget at now: spending of past periods no longer counts.
func (b Budget) At(now time.Time) Budget {
	if start := periodStart(b.Period, now); start.After(b.Since) {
		b.Since, b.Spent, b.Over = start, 0, 0
	}
	return b
}

// ResetsAt returns when the next period begins; zero means never.
func (b Budget) ResetsAt() time.Time {
	switch b.Period {
	case "day":
		return b.Since.AddDate(0, 0, 1)
	case "week":
		return b.Since.AddDate(0, 0, 7)
	case "month":
		return b.Since.AddDate(0, 1, 0)
	}
	return time.Time{}
}

// Available returns what is left below the limit; it may be negative.
func (b Budget) Available() int64 {
	left := b.Limit - b.Reserved // neither is negative
	if left < math.MinInt64+b.Spent {
		return math.MinInt64
	}
	return left - b.Spent
}

func (b Budget) title() string { return fmt.Sprintf("budget %s of %s", b.Name, b.Account) }
