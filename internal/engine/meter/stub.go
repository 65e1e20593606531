package meter

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var errUnbuilt = extensions.Errorf(extensions.KindInternal, "meter: under construction")

// NewQuote prices what in describes.
func NewQuote(in QuoteInput) (Quote, error) { return Quote{}, errUnbuilt }

// Charge settles.
func Charge(segments []Segment, snapshot PriceSnapshot) ([]ChargeLine, error) { return nil, errUnbuilt }

// Validate checks the book; the error holds *FieldError values.
func (b *Book) Validate() error { return errUnbuilt }

// Fresh refuses a stale book.
func (b *Book) Fresh(now time.Time) error { return errUnbuilt }

// SizesOf reads the sizes a spec asks for.
func SizesOf(r extensions.Resources) Sizes { return Sizes{} }

// Map returns the sizes as a ledger keeps them.
func (s Sizes) Map() map[string]int64 { return nil }

// SizesFromMap reads what Map wrote.
func SizesFromMap(m map[string]int64) Sizes { return Sizes{} }

func (s PriceSnapshot) check() error { return errUnbuilt }

func parseDecimal(s string, digits int) (int64, error)  { return 0, errUnbuilt }
func formatDecimal(n int64, digits, atLeast int) string { return "" }
