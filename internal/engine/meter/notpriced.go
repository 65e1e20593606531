package meter

import (
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// NotPriced says why one sandbox cannot be priced at one place although the price itself is well formed: a
// number overflows at these sizes and this duration, or a fee has another currency than the price.
// errors.As finds it in the KindInvalid errors of NewQuote, WorstCase, Charge and ShadowPrice.Hourly.
type NotPriced struct{ reason string }

func (e *NotPriced) Error() string { return e.reason }

func notPriced(remedy, format string, args ...any) error {
	return &extensions.Error{Kind: extensions.KindInvalid, Remedy: remedy, Err: &NotPriced{fmt.Sprintf(format, args...)}}
}

func overflow(format string, args ...any) error {
	return notPriced("check the price, the sizes and the duration for a wrong order of magnitude", format+": the result is too large", args...)
}
