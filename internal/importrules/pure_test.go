package importrules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// purePackages compute and nothing else: no I/O, no clock, no randomness.
var purePackages = []string{engine + "/profile", engine + "/route", engine + "/lifecycle", engine + "/meter"}

var impureImports = []string{"crypto/rand", "database/sql", "io/ioutil", "log", "log/slog", "math/rand", "math/rand/v2",
	"net", "net/http", "os", "os/exec", "os/signal", "os/user", "path/filepath", "plugin", "runtime", "sync", "syscall"}

var impureTime = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

func impureImport(p pkg) []string {
	return forbid(p.Imports, "a pure package does no I/O, reads no clock, draws no random numbers", func(i string) bool {
		return slices.Contains(impureImports, i) || strings.HasPrefix(i, "golang.org/x/sys")
	})
}

// clockReads finds uses of the time package that depend on the clock.
func clockReads(p pkg) ([]string, error) {
	return uses(p, "time", impureTime, "now is an argument")
}

// armings finds where a package sets what failpoints do.
func armings(p pkg) ([]string, error) {
	return uses(p, "failpoint", []string{"Hook"}, "only failpointtest arms")
}

// uses finds where a package names these of another package, which it imports
// under its own name.
func uses(p pkg, of string, names []string, why string) ([]string, error) {
	var out []string
	for _, name := range p.GoFiles {
		file := filepath.Join(p.Dir, name)
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == of && slices.Contains(names, sel.Sel.Name) {
				out = append(out, fmt.Sprintf("%s: %s uses %s.%s: %s", p.ImportPath, name, of, sel.Sel.Name, why))
			}
			return true
		})
	}
	return out, nil
}
