package engine

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Problem is one finding of ValidateProfiles; Line and Column count from 1, 0
// means the file as a whole.
type Problem = catalog.Problem

// ValidateProfiles checks one profile, or a catalog folder, over the built-in
// catalog, against what exts declare. It needs no engine and writes nothing.
// The problems are sorted by place; the error is for what could not be read.
func ValidateProfiles(path string, exts []extensions.Extension) ([]Problem, error) {
	descriptors := make([]extensions.Descriptor, 0, len(exts))
	for _, x := range exts {
		descriptors = append(descriptors, x.Describe())
	}
	return catalog.ValidatePath(path, descriptors, time.Now())
}

// ParseDuration reads "90s", "2h30m" or "1d"; anything else is KindInvalid.
func ParseDuration(s string) (time.Duration, error) { return profile.ParseDuration(s) }

// CheckMoney accepts a decimal that is not negative, one space and a
// currency: "0.50 USD". Anything else is KindInvalid.
func CheckMoney(s string) error {
	_, err := meter.ParseMoney(s)
	return err
}
