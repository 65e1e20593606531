package catalog_test

import (
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// today is when catalogs are read here. On Kiritimati it is the 21st already.
var today = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// descriptors are those of two handlers unlike each other, and the names the
// built-in catalog binds.
func descriptors() []extensions.Descriptor {
	quota := int64(10)
	machine := extensions.Descriptor{
		Handler: "local", Title: "This machine", Doc: "doc", Place: extensions.PlaceMachine,
		Config:  []extensions.Field{{Name: "expose", Type: extensions.FieldStrings}},
		Options: []extensions.Field{{Name: "nice", Type: extensions.FieldInt}},
		Capabilities: extensions.Capabilities{
			Regions: []string{"*"}, OS: []string{"linux"}, Arch: []string{"*"},
			IsolationLevels: []extensions.Isolation{extensions.IsolationNone, extensions.IsolationProcess},
			PricingModel:    extensions.PricingSelfHosted, Egress: extensions.EgressDenyOnly,
			Provides: extensions.Provides{RuntimeKinds: []string{"native"}},
		},
	}
	vendor := extensions.Descriptor{
		Handler: "saas-stub", Title: "Vendor", Doc: "doc", Place: extensions.PlaceAccount,
		Config: []extensions.Field{
			{Name: "region", Type: extensions.FieldString, Enum: []string{"eu", "us"}},
			{Name: "lag", Type: extensions.FieldDuration},
		},
		Options: []extensions.Field{
			{Name: "template", Type: extensions.FieldString},
			{Name: "warm", Type: extensions.FieldDuration},
		},
		Capabilities: extensions.Capabilities{
			Regions: []string{"eu", "us"}, OS: []string{"linux"}, Arch: []string{"amd64"},
			IsolationLevels: []extensions.Isolation{extensions.IsolationContainer, extensions.IsolationMicroVM},
			PricingModel:    extensions.PricingMetered, Egress: extensions.EgressDomain, MaxConcurrent: &quota,
			MaxTTL: 24 * time.Hour, ExtendTTL: true, SecretsAs: slices.Clone(extensions.SecretDeliveries),
		},
	}
	eventual := vendor
	eventual.Handler = "saas-stub-eventual"
	return []extensions.Descriptor{machine, vendor, eventual}
}
