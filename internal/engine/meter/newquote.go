package meter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// NewQuote prices a sandbox before it exists. KindInvalid: an invalid book, malformed costs, negative
// durations, or overflow. It ignores the age of prices: see Book.Fresh.
func NewQuote(in QuoteInput) (Quote, error) {
	if err := in.check(); err != nil {
		return Quote{}, err
	}
	p, err := priceOf(in)
	if err != nil {
		return Quote{}, err
	}
	return in.quote(p, p.Memo && !in.paysFee())
}

// QuoteBy quotes a life that is settled with s, for a ttl; zero means rates only. grain is that of
// QuoteInput. KindInvalid: a negative ttl, or overflow.
func QuoteBy(s PriceSnapshot, ttl, grain time.Duration) (Quote, error) {
	in := QuoteInput{Extension: s.Extension, TTL: ttl, Grain: grain}
	if err := in.check(); err != nil {
		return Quote{}, err
	}
	p := pricing{PriceSnapshot: s, assumptions: slices.Clone(s.Notes)}
	p.assume("at the prices of the day of its creation")
	if s.Basis == BasisUnknown {
		p.unknown("the price of %s, unknown at its creation", s.Extension)
	}
	return in.quote(p, s.Memo && !s.FeeOnly())
}

// quote fills in a quote from prices; free says that no wallet pays.
func (in QuoteInput) quote(p pricing, free bool) (Quote, error) {
	q := Quote{
		Extension: in.Extension, Basis: p.Basis, Confidence: p.Confidence, Source: p.Source, AsOf: p.AsOf, Memo: p.Memo,
		Currency: p.Currency, Snapshot: p.PriceSnapshot, Sizes: p.Sizes, Lines: []QuoteLine{},
	}
	if in.Host != nil {
		q.Host = in.Host.Name
	}
	if p.Basis != BasisUnknown || len(p.Prices) > 0 {
		f := forecast{in: in, pricing: p}
		if err := f.fill(&q); err != nil {
			return Quote{}, err
		}
		p = f.pricing
	}
	if free {
		q.Wallet = new(Amount)
	}
	q.Assumptions, q.Unknowns = append([]string{}, p.assumptions...), append([]string{}, p.unknowns...)
	var err error
	q.Digest, err = q.digest()
	return q, err
}

func (in QuoteInput) check() error {
	for _, d := range []time.Duration{in.TTL, in.Grain, in.Expected} {
		if d < 0 {
			return extensions.Errorf(extensions.KindInvalid, "the duration %s is negative", d)
		}
	}
	if in.EgressBytes != nil && *in.EgressBytes < 0 || in.ActivePermille < 0 || in.ActivePermille > 1000 {
		return extensions.Errorf(extensions.KindInvalid, "the egress or active share of %s is out of range", in.Extension)
	}
	return Segment{Mode: ModeRunning, Sizes: SizesOf(in.Resources)}.check()
}

func (q Quote) digest() (string, error) {
	q.Digest = q.Snapshot.Digest()
	b, err := json.Marshal(q)
	if err != nil {
		return "", extensions.Errorf(extensions.KindInternal, "quote: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// forecast computes settlements that have not happened.
type forecast struct {
	in QuoteInput
	pricing
}

func (f *forecast) fill(q *Quote) error {
	f.withoutEgress()
	expected, longest := f.durations()
	hourly, err := f.sum(f.rate(), f.running(time.Hour, true), halfUp)
	if err != nil {
		return err
	}
	q.Hourly = hourly.known()
	if q.PerCreation, err = f.perCreation(); err != nil {
		return err
	}
	lines := hourly.lines
	low := f.running(0, true)
	low.EgressBytes = new(int64)
	usual, dearest := f.PriceSnapshot, f.PriceSnapshot.Dearest()
	for _, step := range []struct {
		into    **Amount
		wanted  bool
		prices  PriceSnapshot
		segment Segment
		r       rounding
	}{
		{&q.Low, true, usual, low, halfUp},
		{&q.Expected, expected > 0, usual, f.running(expected, true), halfUp},
		{&q.P95, f.p95() > 0, usual, f.running(f.p95(), true), halfUp},
		{&q.Max, longest > 0, dearest, f.running(longest, false), halfUp},
		{&q.Reserve, longest > 0, dearest, f.running(longest, false), roundUp},
	} {
		if !step.wanted {
			continue
		}
		s, err := f.sum(step.prices, step.segment, step.r)
		if err != nil {
			return err
		}
		*step.into = s.known()
		switch step.into {
		case &q.Expected:
			lines = s.lines
		case &q.Max:
			q.Worst = f.quoteLines(s.lines)
		case &q.Reserve:
			if q.Wallet, err = ofWallet(s.lines); err != nil {
				return err
			}
		}
	}
	q.Lines, q.Confidence = f.quoteLines(lines), weakest(lines)
	f.explainUnknowns(lines)
	return nil
}

// running returns one segment. active applies the expected share of CPU; otherwise the upper bound counts.
func (f *forecast) running(d time.Duration, active bool) Segment {
	ms := wholeUp(d)
	s := Segment{Mode: ModeRunning, Milliseconds: ms, Sizes: f.Sizes, EgressBytes: f.in.EgressBytes}
	if active && f.activeCPU() && f.in.ActivePermille > 0 {
		// The share of a bound; charging checks the bound's product again.
		if n, err := mulDiv(f.Sizes.VCPUMilli, ms, milli, roundUp); err == nil {
			if n, err = mulDiv(n, f.in.ActivePermille, milli, roundUp); err == nil {
				s.CPUMillis = &n
			}
		}
	}
	return s
}

// wholeUp returns the milliseconds of d, rounded up.
func wholeUp(d time.Duration) int64 {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond).Milliseconds()
}

type sum struct {
	amount Amount
	all    bool
	lines  []ChargeLine
}

func (s sum) known() *Amount {
	if !s.all {
		return nil
	}
	return &s.amount
}

func (f *forecast) sum(prices PriceSnapshot, segment Segment, r rounding) (sum, error) {
	lines, err := charge([]Segment{segment}, prices, r)
	if err != nil {
		return sum{}, err
	}
	amount, all, err := Total(lines)
	return sum{amount, all, lines}, err
}

// ofWallet sums the lines that a wallet pays; nil if one is unknown.
func ofWallet(lines []ChargeLine) (*Amount, error) {
	lines = slices.DeleteFunc(slices.Clone(lines), func(l ChargeLine) bool { return l.Memo })
	amount, all, err := Total(lines)
	return sum{amount, all, lines}.known(), err
}

// rate returns the prices that grow with time, without minimum, increment and free part.
func (f *forecast) rate() PriceSnapshot {
	s := f.PriceSnapshot
	s.Prices = nil
	for _, p := range f.Prices {
		if !timed(base(p.Component)) && p.Unit != unitCharged && p.Unit != unitSandboxHour {
			continue
		}
		p.Minimum, p.Increment, p.Included = 0, 0, 0
		s.Prices = append(s.Prices, p)
	}
	return s
}

// perCreation returns the creation fee with surcharges; 0 if the prices are known and there is none.
func (f *forecast) perCreation() (*Amount, error) {
	s := f.PriceSnapshot
	s.Prices = slices.DeleteFunc(slices.Clone(s.Prices), func(p SnapshotPrice) bool {
		return p.Unit != unitCreation && p.Unit != unitCharged
	})
	lines, err := charge(nil, s, halfUp)
	if err != nil {
		return nil, err
	}
	amount, all, err := Total(lines)
	return sum{amount, all, lines}.known(), err
}
