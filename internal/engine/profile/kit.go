package profile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// Kit is one file of a catalog's kits/: a named toolchain for many profiles. ParseKit checks single
// values; Set.CheckKits checks what depends on other kits.
type Kit struct {
	ID      string `yaml:"id"`
	Version string `yaml:"version"` // semantic version: "1.0.0"
	Title   string `yaml:"title"`
	// Requires lists kits that come before it: "kit.x" or "kit.x@1.0.0". The prefix is optional, here and
	// in profiles.
	Requires []string `yaml:"requires"`
	// Provides lists requirement kinds "toolchain:…" that hold inside once the kit is installed, so that
	// the place need not provide them.
	Provides    []string          `yaml:"provides"`
	Install     []Step            `yaml:"install"`
	PostAcquire []Step            `yaml:"post_acquire"`
	PreRelease  []Step            `yaml:"pre_release"`
	Env         map[string]string `yaml:"env"` // ${NAME} is the value so far

	file string
	pos  *strictyaml.Positions
}

// providesPrefix starts every kind that a kit may provide: installing cannot add a GPU.
const providesPrefix = "toolchain:"

// ParseKit reads one kit. The error is an *extensions.Error of KindInvalid that wraps strictyaml.Errors:
// every mistake with its position.
func ParseKit(file string, data []byte) (*Kit, error) {
	k := &Kit{file: file}
	pos, err := strictyaml.DecodePositions(file, data, k)
	k.pos = pos
	if !pos.Known() {
		return k, err
	}
	return k, withChecks(k.placeholders(), strictyaml.Collect(file, err), k.check())
}

func (k *Kit) identity() (id, version string) { return k.ID, k.Version }

// Ref returns "id@version".
func (k *Kit) Ref() string { return k.ID + "@" + k.Version }

// File returns the name given to ParseKit.
func (k *Kit) File() string { return k.file }

// Errorf returns a mistake at the position of path in k's file; see strictyaml.Positions.At.
func (k *Kit) Errorf(path []string, format string, args ...any) *strictyaml.Error {
	return k.pos.Errorf(path, format, args...)
}

// placeholders refuses text that looks like a placeholder, since a kit declares no inputs.
func (k *Kit) placeholders() (errs strictyaml.Errors) {
	k.pos.Texts(func(path []string, text string, _ bool) {
		if opening.MatchString(text) {
			errs = append(errs, k.pos.Errorf(path, "%s cannot hold an input: a kit declares none; a profile passes one on in its toolchain.env",
				shownPath(path)))
		}
	})
	return errs
}

// check finds mistakes in a kit's single values.
func (k *Kit) check() strictyaml.Errors {
	c := &checker{pos: k.pos}
	c.named(KitPrefix, k.ID, k.Version)
	if k.Title != "" {
		c.is(line("the title")(k.Title), "title")
	}
	c.kits(k.Requires, "requires")
	c.each(k.Provides, provided, "provides")
	c.steps(k.Install, "install")
	c.steps(k.PostAcquire, "post_acquire")
	c.steps(k.PreRelease, "pre_release")
	c.variables(k.Env, "env")
	return c.errs
}

func provided(s string) error {
	if rest, ok := strings.CutPrefix(s, providesPrefix); !ok || rest == "" {
		return invalid("%s cannot be installed: want %q and a name, as in toolchain:go", quoted(s), providesPrefix)
	}
	return CheckKind("a requirement kind", s)
}

// kitRef splits a reference to a kit. version is "" if none is named.
func kitRef(ref string) (id, version string) {
	id, version, _ = strings.Cut(ref, "@")
	if !strings.HasPrefix(id, KitPrefix) {
		id = KitPrefix + id
	}
	return id, version
}

func pinned(id, version string) string {
	if version == "" {
		return id
	}
	return id + "@" + version
}

// kits checks references to kits; a file may name each kit once.
func (c *checker) kits(refs []string, path ...string) {
	c.each(refs, func(ref string) error { return reference(KitPrefix)(KitPrefix + strings.TrimPrefix(ref, KitPrefix)) }, path...)
	seen := map[string]bool{}
	for i, ref := range refs {
		id, _ := kitRef(ref)
		if seen[id] {
			c.fail(index(path, i), "%s is listed twice", id)
		}
		seen[id] = true
	}
}

// CheckKits finds mistakes between files: missing kits, cycles and contradictions, in kits and in what
// profiles request. broken reports ids whose own file has mistakes; CheckKits does not report those as
// missing.
func (s *Set) CheckKits(broken func(id string) bool) strictyaml.Errors {
	var errs strictyaml.Errors
	known := func(refs []string, at func(i int, msg string) *strictyaml.Error) bool {
		all := true
		for i, ref := range refs {
			id, version := kitRef(ref)
			_, err := s.kits.lookup(pinned(id, version))
			all = all && err == nil
			if err != nil && !broken(id) {
				errs = append(errs, at(i, strictyaml.Message(err)))
			}
		}
		return all
	}
	for _, k := range s.kits.all() {
		if known(k.Requires, func(i int, msg string) *strictyaml.Error { return k.Errorf(index([]string{"requires"}, i), "%s", msg) }) {
			if _, err := s.compose([]string{k.Ref()}, "the profile"); err != nil && (err.cycle == nil || slices.Contains(err.cycle, k)) &&
				!err.missing {
				errs = append(errs, k.Errorf([]string{"requires"}, "%s", strictyaml.Message(err)))
			}
		}
	}
	for _, p := range s.profiles.all() {
		if p.Toolchain == nil || !known(p.Toolchain.Kits, func(i int, msg string) *strictyaml.Error {
			return p.Errorf(index([]string{"toolchain", "kits"}, i), "%s", msg)
		}) {
			continue
		}
		flat, _, err := s.Flatten(p)
		if err != nil {
			continue // flattening reports it
		}
		if _, err := s.toolchain(flat); err != nil && err.cycle == nil && !err.missing {
			errs = append(errs, p.Errorf([]string{"toolchain"}, "%s", strictyaml.Message(err)))
		}
	}
	return errs
}

// kitError says why kits cannot be combined.
type kitError struct {
	msg, remedy string
	cycle       []*Kit // set if they require each other
	missing     bool   // a kit does not exist
	variable    string // name of the env variable concerned, or ""
}

func (e *kitError) Error() string {
	if e.remedy == "" {
		return e.msg
	}
	return fmt.Sprintf("%s; %s", e.msg, e.remedy)
}
