package importrules

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// program is what main links, with types; only packages of the module have
// their syntax.
type program struct {
	fset     *token.FileSet
	info     *types.Info
	ours     []*types.Package
	files    []*ast.File
	imported map[string]*types.Package
	asked    *types.Package
	// elsewhere are the names that files for other systems mention.
	elsewhere map[string]bool
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles, IgnoredGoFiles []string
}

// reached asks `go list` for all that the package in dir links, dependencies first.
func reached(t *testing.T, dir, of string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,IgnoredGoFiles", of)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as `make build`, so that both compile once
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// typed reads the packages for which ours holds from their source.
func typed(t *testing.T, all []listed, ours func(importPath string) bool) *program {
	t.Helper()
	p := &program{fset: token.NewFileSet(), imported: map[string]*types.Package{}, elsewhere: map[string]bool{},
		info: &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}}
	exports := map[string]string{}
	compiled := importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	config := types.Config{Importer: importing(func(path string) (*types.Package, error) {
		if known := p.imported[path]; known != nil {
			return known, nil
		}
		return compiled.Import(path)
	})}
	p.asked = p.check(t, config, "asked", p.parse(t, "asked.go", asked))
	for _, l := range all {
		exports[l.ImportPath] = l.Export
		if !ours(l.ImportPath) || generated(t, l) {
			continue
		}
		var files []*ast.File
		for _, name := range l.GoFiles {
			files = append(files, p.parse(t, filepath.Join(l.Dir, name), nil))
		}
		pkg := p.check(t, config, l.ImportPath, files...)
		p.imported[l.ImportPath], p.ours, p.files = pkg, append(p.ours, pkg), append(p.files, files...)
		for _, name := range l.IgnoredGoFiles {
			ast.Inspect(p.parse(t, filepath.Join(l.Dir, name), nil), func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					p.elsewhere[id.Name] = true
				}
				return true
			})
		}
	}
	return p
}

// generated says whether a program wrote the whole package: what nobody calls
// there is no fault of ours.
func generated(t *testing.T, l listed) bool {
	t.Helper()
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(l.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !ast.IsGenerated(f) {
			return false
		}
	}
	return len(l.GoFiles) > 0
}

type importing func(path string) (*types.Package, error)

func (f importing) Import(path string) (*types.Package, error) { return f(path) }

func (p *program) check(t *testing.T, config types.Config, importPath string, files ...*ast.File) *types.Package {
	t.Helper()
	pkg, err := config.Check(importPath, p.fset, files, p.info)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func (p *program) parse(t *testing.T, file string, text any) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(p.fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// dead follows what main calls and names from declaration to declaration, and
// returns what it never comes by.
func (p *program) dead() []string {
	r := &reach{program: p, names: map[types.Object][]types.Object{}, seen: map[types.Object]bool{}}
	r.declarations()
	all := r.interfaces()
	for r.through(all) {
	}
	var out []string
	for _, o := range r.declared {
		if !r.seen[o] && !p.elsewhere[o.Name()] {
			at := p.fset.Position(o.Pos())
			out = append(out, fmt.Sprintf("%s:%d: %s", at.Filename, at.Line, types.ObjectString(o, types.RelativeTo(o.Pkg()))))
		}
	}
	slices.Sort(out)
	return out
}

type reach struct {
	*program
	declared []types.Object
	names    map[types.Object][]types.Object // what a declaration mentions
	seen     map[types.Object]bool
	roots    []types.Object
}

// declarations notes what each one mentions, and marks all that main reaches.
func (r *reach) declarations() {
	for _, f := range r.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				r.declare(d, d.Name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						r.declare(s, s.Name)
					case *ast.ValueSpec:
						r.declare(s, s.Names...)
					}
				}
			}
		}
	}
	for _, o := range r.roots {
		r.mark(o)
	}
}

func (r *reach) declare(at ast.Node, names ...*ast.Ident) {
	var mentions []types.Object
	ast.Inspect(at, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if o := r.info.Uses[id]; o != nil && o.Pkg() != nil {
				mentions = append(mentions, origin(o))
			}
		}
		return true
	})
	for _, id := range names {
		o := r.info.Defs[id]
		switch {
		case id.Name == "_" || id.Name == "init" || id.Name == "main" && o.Pkg().Name() == "main":
			r.roots = append(r.roots, mentions...)
		default:
			r.declared, r.names[o] = append(r.declared, o), mentions
			if r.promised(o) {
				r.roots = append(r.roots, o)
			}
		}
	}
}

// promised: the contract is for every adapter that may come, and a stub is for
// tests.
func (r *reach) promised(o types.Object) bool {
	path := o.Pkg().Path()
	return (path == contract || within(path, contract+"/saasstub")) && o.Exported()
}

func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

func (r *reach) mark(o types.Object) {
	if r.seen[o] {
		return
	}
	r.seen[o] = true
	for _, m := range r.names[o] {
		r.mark(m)
	}
}

// through marks methods that somebody calls without knowing the type.
// It says whether there were any.
func (r *reach) through(all []*types.Interface) bool {
	grown := false
	for _, i := range all {
		for _, o := range r.declared {
			name, ok := o.(*types.TypeName)
			if !ok || !r.seen[o] || types.IsInterface(o.Type()) {
				continue
			}
			t := types.NewPointer(name.Type())
			if !types.Implements(t, i) {
				continue
			}
			set := types.NewMethodSet(t)
			for m := range i.Methods() {
				if !r.called(m) {
					continue
				}
				if f := origin(set.Lookup(m.Pkg(), m.Name()).Obj()); !r.seen[f] {
					r.mark(f)
					grown = true
				}
			}
		}
	}
	return grown
}

// called: methods of others' interfaces are called by others, and the
// contract's are promised to.
func (r *reach) called(m *types.Func) bool {
	return r.seen[m] || m.Pkg() == nil || m.Pkg().Path() == contract || !slices.Contains(r.ours, m.Pkg())
}

// asked are those that the package errors writes where it uses them.
const asked = `package asked
type (
	is   interface{ Is(error) bool }
	as   interface{ As(any) bool }
	one  interface{ Unwrap() error }
	many interface{ Unwrap() []error }
)`

// interfaces are all there are with a method: declared anywhere, or written
// where they are used.
func (r *reach) interfaces() []*types.Interface {
	var out []*types.Interface
	seen := map[*types.Interface]bool{}
	add := func(t types.Type) {
		if i, ok := t.Underlying().(*types.Interface); ok && i.NumMethods() > 0 && !seen[i] {
			seen[i] = true
			out = append(out, i)
		}
	}
	for _, pkg := range append(r.every(), r.asked) {
		for _, name := range pkg.Scope().Names() {
			if o, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok {
				add(o.Type())
			}
		}
	}
	for _, tv := range r.info.Types {
		if tv.IsType() {
			add(tv.Type)
		}
	}
	return out
}

func (r *reach) every() []*types.Package {
	var out []*types.Package
	seen := map[*types.Package]bool{}
	var add func(*types.Package)
	add = func(p *types.Package) {
		if seen[p] {
			return
		}
		seen[p] = true
		out = append(out, p)
		for _, i := range p.Imports() {
			add(i)
		}
	}
	for _, p := range r.ours {
		add(p)
	}
	return out
}

// release is what main links, read once.
var release struct {
	sync.Mutex
	program *program
}

func released(t *testing.T) *program {
	t.Helper()
	release.Lock()
	defer release.Unlock()
	if release.program == nil {
		release.program = typed(t, reached(t, "../..", "."), func(path string) bool { return within(path, module) })
	}
	return release.program
}

func TestNothingIsDead(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	for _, d := range released(t).dead() {
		t.Error(d)
	}
}

func TestWhatIsDeadIsSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module dead.example\n\ngo 1.24\n",
		"made/made.go": "// Code generated by hand. DO NOT EDIT.\n\npackage made\n\nfunc Used() {}\nfunc Unused() {}\n",
		"main.go": `package main

import (
	"errors"
	"fmt"

	"dead.example/made"
)

type speaker interface {
	Speak() string
	Shout() string
}

type dog struct{}

func (dog) Speak() string  { return word }
func (dog) Shout() string  { return loud } // of an interface, and nobody calls it
func (dog) String() string { return "dog" } // fmt calls it
func (dog) Error() string  { return "" }
func (dog) Unwrap() error  { return nil } // errors calls it
func (dog) Sit()           {}

const word, loud, unused = "wuff", "WUFF", 1

func again() { again() }

func main() {
	made.Used()
	var s speaker = dog{}
	fmt.Println(s.Speak(), s, errors.Unwrap(dog{}))
}
`} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p := typed(t, reached(t, dir, "."), func(path string) bool { return within(path, "dead.example") })
	var names []string
	for _, d := range p.dead() {
		names = append(names, d[strings.LastIndex(d, ": ")+2:])
	}
	want := []string{"func (dog).Shout() string", "const loud untyped string", "const unused untyped int", "func (dog).Sit()", "func again()"}
	if slices.Sort(names); !slices.Equal(names, slices.Sorted(slices.Values(want))) {
		t.Errorf("%q", names)
	}
}
