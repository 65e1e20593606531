package catalog_test

import (
	"context"
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
		Handler: "local", Title: "This machine", Doc: "doc", Places: []extensions.Place{extensions.PlaceMachine},
		Config:  []extensions.Field{{Name: "expose", Type: extensions.FieldStrings}},
		Options: []extensions.Field{{Name: "nice", Type: extensions.FieldInt}},
		Capabilities: extensions.Capabilities{
			Regions: []string{"*"}, OS: []string{"linux"}, Arch: []string{"*"},
			IsolationLevels: []extensions.Isolation{extensions.IsolationNone, extensions.IsolationProcess},
			PricingModel:    extensions.PricingSelfHosted, Egress: extensions.EgressDenyOnly,
			DNS: extensions.DNSClosed, Ingress: extensions.IngressClosed,
			Provides: extensions.Provides{RuntimeKinds: []string{"native"}},
		},
	}
	vendor := extensions.Descriptor{
		Handler: "saas-stub", Title: "Vendor", Doc: "doc", Places: []extensions.Place{extensions.PlaceAccount},
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
			PricingModel:    extensions.PricingMetered, Egress: extensions.EgressDomain,
			CIDRPorts: extensions.PortsAny, DomainPorts: extensions.PortsAny, DNS: extensions.DNSClosed, Ingress: extensions.IngressClosed,
			MaxConcurrent: &quota,
			MaxTTL:        24 * time.Hour, ExtendTTL: extensions.ExtendBoth, IdleReap: extensions.IdleReapNone,
			SecretsAs: slices.Clone(extensions.SecretDeliveries),
		},
	}
	eventual := vendor
	eventual.Handler = "saas-stub-eventual"
	return []extensions.Descriptor{machine, vendor, eventual}
}

// described is an extension that only describes itself.
type described struct{ extensions.Descriptor }

func (d described) Describe() extensions.Descriptor { return d.Descriptor }

func (described) Open(context.Context, extensions.Config) (extensions.Backend, error) {
	return nil, extensions.Errorf(extensions.KindUnsupported, "a catalog opens nothing")
}

func handlers() (all []extensions.Extension) {
	for _, d := range descriptors() {
		all = append(all, described{d})
	}
	return all
}
