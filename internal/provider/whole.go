package provider

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// wholeNumber validates an attribute that takes a whole number, both bounds included. The attribute is a
// Number and not an Int64: the framework rejects what overflows an Int64 before any validator runs, as a
// provider defect.
type wholeNumber struct{ min, max int64 }

// anyWhole is a whole number without bounds of its own.
func anyWhole() wholeNumber { return wholeNumber{math.MinInt64, math.MaxInt64} }

// positive is a whole number of at least 1.
func positive() wholeNumber { return wholeNumber{1, math.MaxInt64} }

func (w wholeNumber) Description(context.Context) string {
	switch {
	case w.min == math.MinInt64:
		return "a whole number of at most 64 bits"
	case w.max == math.MaxInt64:
		return fmt.Sprintf("a whole number of at least %d", w.min)
	}
	return fmt.Sprintf("a whole number from %d to %d", w.min, w.max)
}

func (w wholeNumber) MarkdownDescription(ctx context.Context) string { return w.Description(ctx) }

func (w wholeNumber) ValidateNumber(ctx context.Context, req validator.NumberRequest, resp *validator.NumberResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	n, wrong := wholeOf(req.ConfigValue.ValueBigFloat())
	if wrong == "" && (n < w.min || n > w.max) {
		wrong = fmt.Sprintf("%d is out of range", n)
	}
	if wrong != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid value for "+req.Path.String(),
			sentence(wrong)+"\n\nExpected: "+sentence(w.Description(ctx)))
	}
}

// vcpus validates a number of vCPUs: from 0.001 to a million, in thousandths.
type vcpus struct{}

const maxVCPUs, vcpuDecimals = 1_000_000, 3

func (vcpus) Description(context.Context) string {
	return fmt.Sprintf("a number from 0.001 to %d with at most %d decimals", maxVCPUs, vcpuDecimals)
}

func (v vcpus) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v vcpus) ValidateNumber(ctx context.Context, req validator.NumberRequest, resp *validator.NumberResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	f := req.ConfigValue.ValueBigFloat()
	_, decimals, _ := strings.Cut(f.Text('f', -1), ".")
	if f.Sign() <= 0 || f.Cmp(big.NewFloat(maxVCPUs)) > 0 || len(decimals) > vcpuDecimals {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid value for "+req.Path.String(),
			sentence(f.Text('g', shownDigits)+" is no number of vCPUs")+"\n\nExpected: "+sentence(v.Description(ctx)))
	}
}

// shownDigits bounds how many digits of an overflowing number are shown.
const shownDigits = 20

// wholeOf returns a number as int64, or what prevents it.
func wholeOf(f *big.Float) (n int64, wrong string) {
	n, exact := f.Int64()
	switch {
	case !f.IsInt():
		return 0, f.Text('g', shownDigits) + " is not a whole number"
	case exact != big.Exact:
		return 0, "the number " + f.Text('g', shownDigits) + " does not fit in 64 bits"
	}
	return n, ""
}

// int64Of returns the value of a validated attribute; 0 if null or unknown.
func int64Of(n types.Number) int64 {
	if n.IsNull() || n.IsUnknown() {
		return 0
	}
	v, _ := n.ValueBigFloat().Int64()
	return v
}

// optionalInt returns null for 0, which the engine uses for "not set".
func optionalInt(n int64) types.Number {
	if n == 0 {
		return types.NumberNull()
	}
	return types.NumberValue(new(big.Float).SetInt64(n))
}
