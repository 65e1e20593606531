// Command typecheck says what does not compile for other systems. It checks types from source and compiles nothing, which
// takes a tenth of the time.
//
//	typecheck [-tests] windows/amd64 darwin/arm64
//
// It exits with 1 if anything is wrong, and with 2 if it cannot tell.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	tests := flag.Bool("tests", false, "the tests too")
	flag.Parse()
	wrong := 0
	for _, target := range flag.Args() {
		found, err := check(".", target, *tests)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		for _, line := range found {
			fmt.Printf("%s: %s\n", target, line)
		}
		wrong += len(found)
	}
	if wrong > 0 {
		os.Exit(1)
	}
}

// check returns what is wrong with the packages of the module in dir for a target, such as linux/386.
func check(dir, target string, tests bool) ([]string, error) {
	system, arch, ok := strings.Cut(target, "/")
	if !ok {
		return nil, fmt.Errorf("%q is no target: write it as linux/386", target)
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{
		// NeedDeps without NeedExportFile: from source.
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesSizes,
		Dir:   root,
		Tests: tests,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
		ParseFile: func(set *token.FileSet, name string, text []byte) (*ast.File, error) {
			f, err := parser.ParseFile(set, name, text, parser.AllErrors|parser.SkipObjectResolution)
			if f != nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
				empty(f)
			}
			return f, err
		},
	}, "./...")
	if err != nil {
		return nil, err
	}
	if len(loaded) == 0 {
		return nil, fmt.Errorf("no packages in %s", root)
	}
	var found []string
	seen := map[string]bool{} // a package and its tests share files
	for _, p := range loaded {
		if strings.HasSuffix(p.ID, ".test") {
			continue // the main function that go test writes
		}
		for _, e := range p.Errors {
			if line := e.Error(); !seen[line] {
				seen[line] = true
				found = append(found, line)
			}
		}
	}
	return found, nil
}

// empty drops what functions of other modules do: only what they are is asked. What is wrong inside them for that reason
// is theirs, and not told.
func empty(f *ast.File) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			fn.Body.List = nil
		}
	}
}
