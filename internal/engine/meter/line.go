package meter

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Line returns the snapshot in one line, for a receipt: everything that determines charges, and nothing
// that only explains them (the book, its dates and sources, notes, the region). Equal snapshots have equal
// lines.
//
// Semicolons separate a head of nine columns from the prices, and the prices from each other; commas
// separate values within a column. Values are escaped as in a URL's query, and empty values at the end are
// omitted.
func (s PriceSnapshot) Line() string {
	memo := ""
	if s.Memo {
		memo = "memo"
	}
	parts := []string{strconv.Itoa(s.Version), columns(string(s.Basis)), columns(s.Extension), columns(string(s.Currency)),
		columns(string(s.Confidence)),
		columns(s.Billing), columns(s.Counts), memo,
		columns(count(s.Sizes.VCPUMilli), count(s.Sizes.MemoryMiB), count(s.Sizes.DiskMiB), count(s.Sizes.GPUs), s.Sizes.GPUModel)}
	for _, p := range s.Prices {
		confidence := string(p.Confidence)
		if p.Confidence == s.Confidence {
			confidence = ""
		}
		parts = append(parts, columns(p.Component, p.Unit, price(p.Price), count(p.Minimum), count(p.Increment), price(p.Paused),
			count(p.Included), confidence))
	}
	return strings.Join(parts, ";")
}

const (
	lineHead    = 9
	sizeColumns = 5
	pricedBy    = 8
)

// ParseLine reads what [PriceSnapshot.Line] wrote. Another format or version, and anything that Charge
// could not use, is KindInvalid.
func ParseLine(text string) (PriceSnapshot, error) {
	parts := strings.Split(text, ";")
	bad := extensions.Errorf(extensions.KindInvalid, "this is not a price line")
	if len(parts) < lineHead {
		return PriceSnapshot{}, bad
	}
	var r lineReader
	sizes := r.columns(parts[lineHead-1], sizeColumns)
	s := PriceSnapshot{Version: int(r.count(parts[0])), Basis: Basis(r.text(parts[1])), Extension: r.text(parts[2]),
		Currency:   Currency(r.text(parts[3])),
		Confidence: Confidence(r.text(parts[4])), Billing: r.text(parts[5]), Counts: r.text(parts[6]), Memo: parts[7] == "memo",
		Sizes: Sizes{VCPUMilli: r.count(sizes[0]), MemoryMiB: r.count(sizes[1]), DiskMiB: r.count(sizes[2]), GPUs: r.count(sizes[3]),
			GPUModel: sizes[4]}}
	for _, part := range parts[lineHead:] {
		c := r.columns(part, pricedBy)
		p := SnapshotPrice{Component: c[0], Unit: c[1], Price: r.price(c[2]), Minimum: r.count(c[3]), Increment: r.count(c[4]),
			Paused: r.price(c[5]), Included: r.count(c[6]), Confidence: Confidence(c[7])}
		if p.Confidence == "" {
			p.Confidence = s.Confidence
		}
		s.Prices = append(s.Prices, p)
	}
	if r.wrong || s.Line() != text {
		return PriceSnapshot{}, bad
	}
	return s, s.check()
}

func columns(values ...string) string {
	for i, v := range values {
		values[i] = url.QueryEscape(v)
	}
	return strings.TrimRight(strings.Join(values, ","), ",")
}

func count(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// price returns "" for none: unknown or, while paused, not charged.
func price(p *UnitPrice) string {
	if p == nil {
		return ""
	}
	return p.String()
}

// lineReader records that a line is malformed.
type lineReader struct{ wrong bool }

func (r *lineReader) text(s string) string {
	v, err := url.QueryUnescape(s)
	r.wrong = r.wrong || err != nil
	return v
}

// columns returns n values, of which trailing ones may be missing.
func (r *lineReader) columns(s string, n int) []string {
	given := strings.Split(s, ",")
	r.wrong = r.wrong || len(given) > n
	out := make([]string, max(n, len(given)))
	for i, v := range given {
		out[i] = r.text(v)
	}
	return out
}

func (r *lineReader) count(s string) int64 {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	r.wrong = r.wrong || err != nil
	return n
}

func (r *lineReader) price(s string) *UnitPrice {
	if s == "" {
		return nil
	}
	p, err := ParseUnitPrice(s)
	r.wrong = r.wrong || err != nil
	return &p
}
