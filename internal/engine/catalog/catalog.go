// Package catalog reads folders of YAML into profiles, kits, extension
// bindings, price books and policies. It is the only reader of catalogs; what
// it returns is plain data that the pure packages work on.
//
// A catalog folder holds profiles/, kits/, extensions/, prices/ and policies/,
// each with *.yaml or *.yml files of one document. Other files, hidden files and deeper folders
// are left alone, so that a profile's bundle can lie beside it. Symbolic links
// are followed inside the folder and refused where they leave it.
package catalog

import (
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Catalog is all that was read: the built-in catalog and the folders over it.
type Catalog struct {
	Profiles *profile.Set // and the kits they are made of
	Bindings []Binding    // sorted by id
	// Books are sorted by id. Each binding and each handler has at most one;
	// some are of vendors that this build has no handler for.
	Books []meter.Book
	// Policies are sorted by id. BrokenPolicies says what is wrong with those
	// that could not be read; see Permission.
	Policies       []Policy
	BrokenPolicies []string
	// Digest is the lower-case hex SHA-256 over the names and bytes of every
	// file read, in order. It does not depend on where the folders are.
	Digest string
	homes  map[string]home // of each profile, by reference
	// Notices tell what was overridden or has no effect.
	Notices []string
}

// Binding is one use of an extension: an account, a region, a price.
type Binding struct {
	ID         string // "ext.daytona-self"
	Title      string
	Handler    string
	Descriptor extensions.Descriptor
	// Capabilities is the descriptor's declaration, narrowed by the catalog.
	Capabilities extensions.Capabilities
	// Provides is the operator's override, or the class default.
	Provides extensions.Provides
	Config   map[string]any // checked against Descriptor.Config
	Region   string         // "" = any
	Priority int64          // higher is preferred
	// Billing is how it is paid where it is metered: platform | byok; "" = as
	// the request says.
	Billing string
	// PerHour is what a place without a Host costs its owner, used or not:
	// "0.10 USD"; "" = not stated.
	PerHour       string
	PerHourSource string
	PerHourAsOf   string // YYYY-MM-DD
	// Shadow is what an own place is counted at where it costs nothing; nil =
	// not stated.
	Shadow *meter.ShadowPrice
	// CreateToReady is how long a sandbox takes to be ready, until there is
	// history; 0 = not stated.
	CreateToReady time.Duration
	// Fee is what the platform takes here; nil = nothing.
	Fee *meter.Fee
	// MaxSandboxes bounds what the owner wants here at once; nil = not bounded by us.
	MaxSandboxes *int64
	File         string // where it stands
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

// Named finds a binding that must be there. An unknown one is KindInvalid and
// names the nearest.
func (c *Catalog) Named(id string) (Binding, error) {
	if b, ok := c.Binding(id); ok {
		return b, nil
	}
	ids := make([]string, 0, len(c.Bindings))
	for _, b := range c.Bindings {
		ids = append(ids, b.ID)
	}
	near := strictyaml.NearestN(id, ids, 3)
	if len(near) == 0 {
		near = ids
	}
	return Binding{}, extensions.Errorf(extensions.KindInvalid, "the catalog has no extension %q", extensions.Clean(id, 80)).
		WithRemedy("add the catalog folder that defines it, or use one it has: %s", strings.Join(near, ", "))
}
