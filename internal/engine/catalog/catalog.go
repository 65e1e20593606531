// Package catalog reads folders of YAML into profiles, extension bindings and
// price books. It is the only reader of catalogs; what it returns is plain
// data that the pure packages work on.
package catalog

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Catalog is all that was read: the built-in catalog and the folders over it.
type Catalog struct {
	Profiles *profile.Set
	Bindings []Binding    // sorted by id
	Books    []meter.Book // sorted by id
	// Digest is the lower-case hex SHA-256 over the names and bytes of every
	// file read, in order. It does not depend on where the folders are.
	Digest string
	// Notices tell what was overridden or ignored.
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
	Cost     *Cost          // nil = not stated
	// MaxSandboxes bounds what the owner wants here at once; nil = not bounded by us.
	MaxSandboxes *int64
	File         string // where it stands
}

// Cost is what a place without a Host costs its owner, used or not.
type Cost struct {
	PerHour meter.Money
	Source  string
	AsOf    string // YYYY-MM-DD
}

// Load reads the built-in catalog and then the folders, later ones over
// earlier ones. All mistakes are told at once, as strictyaml.Errors of
// KindInvalid. descriptors are those of every handler there is.
func Load(dirs []string, descriptors []extensions.Descriptor) (*Catalog, error) { return nil, nil }

// Binding finds a binding. An unknown id is KindInvalid and names the nearest.
func (c *Catalog) Binding(id string) (Binding, error) { return Binding{}, nil }

// Problem is one finding of ValidatePath.
type Problem struct {
	File         string
	Line, Column int // 0 = the file as a whole
	Msg          string
	Notice       bool // worth knowing, not a mistake
}

// ValidatePath checks one file or one folder over the built-in catalog. The
// problems are sorted; the error is for what could not be read at all.
func ValidatePath(path string, descriptors []extensions.Descriptor) ([]Problem, error) {
	return nil, nil
}
