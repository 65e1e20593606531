package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Load reads the built-in catalog and then the folders, later ones over earlier ones. It reports all
// mistakes at once, as strictyaml.Errors of KindInvalid. handlers are the extensions of the build; a
// built-in binding whose handler is not among them is left out. In the folders, a date that is meter.Ahead
// of now is a mistake.
func Load(dirs []string, handlers []extensions.Extension, now time.Time) (*Catalog, error) {
	base, err := builtinLayer()
	if err != nil {
		return nil, err
	}
	layers := []layer{base}
	for _, dir := range dirs {
		l, err := folderLayer(dir)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	ld := newLoader(handlers, now)
	ld.load(layers)
	if err := ld.errs.Err(); err != nil {
		return nil, err
	}
	return ld.catalog(), nil
}

// loader gathers layers into one catalog.
type loader struct {
	now         time.Time
	handlers    map[string]extensions.Extension
	profiles    *profile.Set
	bindings    map[string]entry[Binding]
	books       map[string]entry[meter.Book] // by what they price: see priced
	bookIDs     map[string]entry[string]     // id -> what it prices
	tunnels     map[string]entry[tunnel]
	identities  map[string]entry[extensions.SSHIdentity]
	policies    []entry[Policy]
	policyErrs  strictyaml.Errors
	policyNames []namedExtension
	from        map[string]entry[string] // profile or kit reference -> file
	homes       map[string]home          // by profile reference
	broken      map[string]bool          // ids of files with mistakes
	wrong       []*profile.Profile       // of such files
	errs        strictyaml.Errors
	notices     strictyaml.Errors
	digest      hash.Hash
	layer       int
}

// entry is a value and where it was defined.
type entry[T any] struct {
	value T
	file  string
	layer int
	line  int
	col   int
}

func newLoader(handlers []extensions.Extension, now time.Time) *loader {
	ld := &loader{
		now:      now,
		handlers: map[string]extensions.Extension{}, profiles: profile.NewSet(), bindings: map[string]entry[Binding]{},
		books: map[string]entry[meter.Book]{}, bookIDs: map[string]entry[string]{}, from: map[string]entry[string]{},
		tunnels: map[string]entry[tunnel]{}, identities: map[string]entry[extensions.SSHIdentity]{},
		homes: map[string]home{}, broken: map[string]bool{}, digest: sha256.New(),
	}
	for _, x := range handlers {
		ld.handlers[x.Describe().Handler] = x
	}
	return ld
}

// handlerNames lists handlers for messages, without test doubles, which are for callers who know their
// names.
func (ld *loader) handlerNames() []string {
	var names []string
	for name, x := range ld.handlers {
		if !x.Describe().NamedOnly {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (ld *loader) load(layers []layer) {
	for i, l := range layers {
		ld.layer = i
		ld.errs = append(ld.errs, l.errs...)
		ld.policyErrs = append(ld.policyErrs, l.policyErrs...)
		fmt.Fprintf(ld.digest, "layer %d\n", i)
		for _, f := range l.files {
			fmt.Fprintf(ld.digest, "%d %s %d\n", len(f.rel), f.rel, len(f.data))
			ld.digest.Write(f.data)
			switch f.kind {
			case profilesFolder:
				ld.addProfile(f, home{dir: l.name, builtin: l.builtin})
			case kitsFolder:
				ld.addKit(f)
			case extensionsFolder:
				ld.addBinding(f, l.builtin)
			case pricesFolder:
				ld.addBook(f, l.builtin)
			case policiesFolder:
				ld.addPolicy(f)
			case tunnelsFolder:
				ld.addTunnel(f)
			case identitiesFolder:
				ld.addIdentity(f)
			}
		}
		if len(l.files) == 0 && len(l.errs)+len(l.policyErrs) == 0 {
			ld.notices = append(ld.notices, &strictyaml.Error{File: l.name,
				Msg: "no catalog files here: the catalog reads *.yaml in " + strings.Join(folders, "/, ") + "/ are read"})
		}
	}
	ld.checkTogether()
}

func (ld *loader) catalog() *Catalog {
	c := &Catalog{Profiles: ld.profiles, homes: ld.homes, Digest: hex.EncodeToString(ld.digest.Sum(nil))}
	for _, e := range ld.bindings {
		c.Bindings = append(c.Bindings, e.value)
	}
	slices.SortFunc(c.Bindings, func(a, b Binding) int { return strings.Compare(a.ID, b.ID) })
	for _, e := range ld.books {
		c.Books = append(c.Books, e.value)
	}
	slices.SortFunc(c.Books, func(a, b meter.Book) int { return strings.Compare(a.ID, b.ID) })
	c.Tunnels, c.Identities = map[string]extensions.SSH{}, map[string]extensions.SSHIdentity{}
	for name, e := range ld.tunnels {
		c.Tunnels[name] = e.value.ssh
	}
	for name, e := range ld.identities {
		c.Identities[name] = e.value
	}
	for _, e := range ld.policies {
		c.Policies = append(c.Policies, e.value)
	}
	slices.SortStableFunc(c.Policies, func(a, b Policy) int { return strings.Compare(a.ID, b.ID) })
	for _, e := range ld.policyErrs {
		c.BrokenPolicies = append(c.BrokenPolicies, e.Error())
		ld.notices = append(ld.notices, &strictyaml.Error{File: e.File, Line: e.Line, Column: e.Column, Suggestion: e.Suggestion,
			Msg: "nothing new can be created until you correct this: " + e.Msg})
	}
	slices.SortStableFunc(ld.notices, func(a, b *strictyaml.Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	for _, n := range ld.notices {
		c.Notices = append(c.Notices, n.Error())
	}
	return c
}

// overrides decides between two definitions of one thing: in one folder they are a mistake; across folders
// the later one wins with a notice.
func overrides[T any](ld *loader, was entry[T], at *strictyaml.Error, what string) bool {
	if was.layer == ld.layer {
		at.Msg = what + " is already defined in " + was.file
		ld.errs = append(ld.errs, at)
		return false
	}
	at.Msg = what + " replaces the one of " + was.file
	ld.notices = append(ld.notices, at)
	return true
}
