package meter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// NewQuote prices a sandbox before it exists. It fails with KindInvalid on a
// book that does not validate, malformed costs, negative durations and
// overflow. It does not look at the age of a price: see Book.Fresh.
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

// QuoteBy is the quote of a life that is settled with s, for a ttl; zero means
// rates only. It fails with KindInvalid on a negative ttl and on overflow.
func QuoteBy(s PriceSnapshot, ttl time.Duration) (Quote, error) {
	in := QuoteInput{Extension: s.Extension, TTL: ttl}
	if err := in.check(); err != nil {
		return Quote{}, err
	}
	p := pricing{PriceSnapshot: s, assumptions: slices.Clone(s.Notes)}
	p.assume("by the prices of the day it was made")
	if s.Basis == BasisUnknown {
		p.unknown("what %s costs was not known when it was made", s.Extension)
	}
	return in.quote(p, s.Memo && !s.FeeOnly())
}

// quote fills a quote by prices; free says that no wallet moves.
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
	for _, d := range []time.Duration{in.TTL, in.Expected} {
		if d < 0 {
			return extensions.Errorf(extensions.KindInvalid, "the duration %s is negative", d)
		}
	}
	if in.EgressBytes != nil && *in.EgressBytes < 0 || in.ActivePermille < 0 || in.ActivePermille > 1000 {
		return extensions.Errorf(extensions.KindInvalid, "egress or active share of %s is out of range", in.Extension)
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

// forecast runs settlements that have not happened.
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
		{&q.Reserve, longest > 0, dearest, f.running(longest, false), ceiling},
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

// running is one segment; active applies the expected share of CPU, else the
// bound counts.
func (f *forecast) running(d time.Duration, active bool) Segment {
	ms := (d + time.Millisecond - 1).Truncate(time.Millisecond).Milliseconds()
	s := Segment{Mode: ModeRunning, Milliseconds: ms, Sizes: f.Sizes, EgressBytes: f.in.EgressBytes}
	if active && f.activeCPU() && f.in.ActivePermille > 0 {
		// A share of a bound whose product is checked again when charged.
		if n, err := mulDiv(f.Sizes.VCPUMilli, ms, milli, ceiling); err == nil {
			if n, err = mulDiv(n, f.in.ActivePermille, milli, ceiling); err == nil {
				s.CPUMillis = &n
			}
		}
	}
	return s
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

// ofWallet adds up the lines that move a wallet; nil where one is not known.
func ofWallet(lines []ChargeLine) (*Amount, error) {
	lines = slices.DeleteFunc(slices.Clone(lines), func(l ChargeLine) bool { return l.Memo })
	amount, all, err := Total(lines)
	return sum{amount, all, lines}.known(), err
}

// rate keeps what grows with time, without minimum, increment and free part.
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

// perCreation is the fee alone, surcharges included; 0 where the prices are
// known and there is none.
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
