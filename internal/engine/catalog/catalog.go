// Package catalog reads folders of YAML into profiles, kits, extension bindings, price books and policies.
// It is the only reader of catalogs; it returns plain data for the pure packages.
//
// A catalog folder holds profiles/, kits/, extensions/, prices/, policies/, tunnels/ and identities/, each
// with *.yaml or *.yml files of one document. Other files, hidden files and deeper folders are ignored, so
// that a profile's bundle can lie beside it. Symbolic links are followed inside the folder and refused if
// they leave it.
package catalog

import (
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Catalog is everything that was read: the built-in catalog with the folders laid over it.
type Catalog struct {
	Profiles *profile.Set // with their kits
	Bindings []Binding    // sorted by id
	// Books are sorted by id. Each binding and each handler has at most one; some belong to vendors that
	// this build has no handler for.
	Books []meter.Book
	// Policies are sorted by id. BrokenPolicies describes those that could not be read; see Permission.
	Policies       []Policy
	BrokenPolicies []string
	// Tunnels are jump hosts and Identities are logins, by name.
	Tunnels    map[string]extensions.SSH
	Identities map[string]extensions.SSHIdentity
	// Digest is the lower-case hex SHA-256 over the names and bytes of every file read, in order. It does
	// not depend on where the folders are.
	Digest string
	homes  map[string]home // of each profile, by reference
	// Notices say what was overridden or has no effect.
	Notices []string
}

// Binding is an extension as the catalog configures it: an account, a region, a price.
type Binding struct {
	ID      string // "ext.daytona-self"
	Title   string
	Handler string
	// Descriptor is what the extension declares for this binding; see extensions.Declared.
	Descriptor extensions.Descriptor
	// Capabilities are the descriptor's, narrowed by the catalog.
	Capabilities extensions.Capabilities
	// Provides is the class default, extended or replaced by the operator.
	Provides extensions.Provides
	Config   map[string]any // checked against Descriptor.Config
	// Registries are logins for the images to pull there, by the registry's host.
	Registries map[string]Registry
	Region     string // "" = any
	Priority   int64  // higher is preferred
	// Billing says who pays if the binding is metered: platform | byok; "" = as the request says.
	Billing string
	// PerHour is what a place without a Host costs its owner, used or not: "0.10 USD"; "" = not stated.
	PerHour       string
	PerHourSource string
	PerHourAsOf   string // YYYY-MM-DD
	// Shadow is the price used to compare an own place that costs nothing; nil = not stated.
	Shadow *meter.ShadowPrice
	// CreateToReady is how long a sandbox takes to become ready, until there is history; 0 = not stated.
	CreateToReady time.Duration
	// Fee is what the platform charges here; nil = nothing.
	Fee *meter.Fee
	// Enabled is whether it takes part in routing without a pin. nil = nothing is said: a place of the user's own
	// does, and of a vendor's account the provider's credentials decide.
	Enabled *bool
	// MaxSandboxes is the owner's limit on concurrent sandboxes here; nil = no limit of ours.
	MaxSandboxes *int64
	File         string // where it is defined
}

// Binding finds a binding by id.
func (c *Catalog) Binding(id string) (Binding, bool) {
	for _, b := range c.Bindings {
		if b.ID == id {
			return b, true
		}
	}
	return Binding{}, false
}

// Named finds a binding that must exist. An unknown one is KindInvalid with the nearest names.
func (c *Catalog) Named(id string) (Binding, error) {
	if b, ok := c.Binding(id); ok {
		return b, nil
	}
	var all, listed []string
	for _, b := range c.Bindings {
		all = append(all, b.ID)
		if !b.Descriptor.NamedOnly { // test doubles are for callers who know their names
			listed = append(listed, b.ID)
		}
	}
	near := strictyaml.NearestN(id, all, 3)
	if len(near) == 0 {
		near = listed
	}
	return Binding{}, extensions.Errorf(extensions.KindInvalid, "the catalog has no extension %q", extensions.Clean(id, 80)).
		WithRemedy("add the catalog folder that defines it, or use one of %s", strings.Join(near, ", "))
}
