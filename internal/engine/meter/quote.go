package meter

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// QuoteInput is everything that a quote depends on; equal inputs give equal quotes.
type QuoteInput struct {
	Extension string // binding id
	// PricingModel is extensions.PricingSelfHosted or PricingMetered, from the binding's capabilities.
	PricingModel string
	BYOK         bool   // the user's own key pays the vendor
	Region       string // "" = the place's own
	// Book is the binding's price book; nil if the catalog has none.
	Book *Book
	// PerHour is the binding's explicit cost per hour, "0.10 USD"; "" = none.
	PerHour string
	// PerHourSource and PerHourAsOf give its source and date; "" = the binding.
	PerHourSource, PerHourAsOf string
	// Fee is the platform's fee at this binding; nil = none.
	Fee *Fee
	// Host is the machine of a self-hosted candidate; nil for an account.
	Host *extensions.Host

	Resources extensions.Resources
	// TTL bounds the maximum; zero means no bound, and rates only.
	TTL time.Duration
	// Grain is how much later than asked the place may end it; the maximum counts it.
	Grain time.Duration
	// Expected is how long it will probably run; zero = History's median, else the whole TTL.
	Expected time.Duration
	History  *History
	// EgressBytes is the expected outgoing traffic; nil = unknown.
	EgressBytes *int64
	// ActivePermille is the share of allocated CPU expected to be active, for active-cpu billing, 1-1000;
	// zero = unknown, taken as 1000.
	ActivePermille int64
}

// History is how long past sandboxes of the profile ran.
type History struct {
	Median, P95 time.Duration
	Count       int64
}

// Quote is the price before a create. Unknown amounts are nil, never 0.
type Quote struct {
	Extension  string     `json:"extension"`
	Host       string     `json:"host,omitempty"`
	Basis      Basis      `json:"basis"`
	Confidence Confidence `json:"confidence"`
	Source     string     `json:"source,omitempty"`
	AsOf       string     `json:"as_of,omitempty"`
	Memo       bool       `json:"memo"` // shown, but no wallet pays
	Currency   Currency   `json:"currency,omitempty"`

	Hourly      *Amount `json:"hourly"`       // while running, without minimum and creation fee
	PerCreation *Amount `json:"per_creation"` // once
	Low         *Amount `json:"low"`          // creation fee and minimum
	Expected    *Amount `json:"expected"`     // at the expected duration
	P95         *Amount `json:"p95"`          // at the 95th percentile of history
	Max         *Amount `json:"max"`          // at the TTL, running or paused
	Reserve     *Amount `json:"reserve"`      // Max with every line rounded up
	// Wallet is the part of Reserve that a wallet pays: all of it with platform credit, the fee with the
	// user's own key, 0 at an own place.
	Wallet *Amount `json:"wallet"`

	Lines []QuoteLine `json:"lines"` // of Expected; without a duration, of Hourly
	// Worst are the lines of Max, for comparison with a limit.
	Worst       []QuoteLine `json:"-"`
	Assumptions []string    `json:"assumptions"`
	Unknowns    []string    `json:"unknowns"`
	// Digest is the lower-case hex SHA-256 of the quote's other fields and the snapshot.
	Digest string `json:"digest"`

	// Snapshot settles at the prices of this quote.
	Snapshot PriceSnapshot `json:"-"`
	// Sizes are what the sandbox will be charged for.
	Sizes Sizes `json:"sizes"`
}

// QuoteLine is a charge line with the source of its price.
type QuoteLine struct {
	ChargeLine
	Source string `json:"source,omitempty"`
	AsOf   string `json:"as_of,omitempty"`
}

// In returns a as money in the quote's currency; false if a is nil.
func (q Quote) In(a *Amount) (Money, bool) {
	if a == nil {
		return Money{}, false
	}
	return Money{Amount: *a, Currency: q.Currency}, true
}
