package meter

import (
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// NotPriced says why one sandbox cannot be priced at one place, although what
// states the price is well formed: a number does not fit at these sizes and this
// duration, or a fee is in another currency than the price. errors.As finds it
// in the KindInvalid errors of NewQuote, WorstCase, Charge and ShadowPrice.Hourly.
type NotPriced struct{ reason string }

func (e *NotPriced) Error() string { return e.reason }

func notPriced(remedy, format string, args ...any) error {
	return &extensions.Error{Kind: extensions.KindInvalid, Remedy: remedy, Err: &NotPriced{fmt.Sprintf(format, args...)}}
}

func overflow(format string, args ...any) error {
	return notPriced("check the price, the sizes and the duration for a mistake of scale", format+": the result does not fit", args...)
}
