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
var purePackages = []string{engine + "/profile", engine + "/route", engine + "/lifecycle", engine + "/meter", engine + "/plan",
	engine + "/ledger/bank", engine + "/ledger/chain"}

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
	if within(p.ImportPath, failpoints) {
		return nil, nil
	}
	return uses(p, "failpoint", []string{"Hook"}, "only failpointtest arms")
}

// moneyStore is the room that writes what the bank answers.
const moneyStore = engine + "/ledger/sqlstore"

// amounts are the fields and methods of the bank's types that are money.
var amounts = []string{"Amount", "Limit", "Reserved", "Spent", "Over", "Fixed", "Hourly", "UnitPrice", "Wallet", "OwnKey", "OwnPlace",
	"DebitsPending", "CreditsPending", "DebitsPosted", "CreditsPosted", "Available", "Owed", "Count", "Need"}

// sums finds where a package adds, subtracts, multiplies or orders amounts of money.
// What is compared for being the same is not counted.
func sums(p pkg) ([]string, error) {
	var out []string
	err := eachFile(p, func(name string, f *ast.File) {
		found := func(what ast.Node) {
			out = append(out, fmt.Sprintf("%s: %s does a sum of money (%s): that is the bank's", p.ImportPath, name, ofMoney(what)))
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op != token.EQL && n.Op != token.NEQ && n.Op != token.LAND && n.Op != token.LOR && (ofMoney(n.X) != "" || ofMoney(n.Y) != "") {
					found(n)
				}
			case *ast.AssignStmt:
				if n.Tok != token.ASSIGN && n.Tok != token.DEFINE && ofMoney(n.Lhs[0])+ofMoney(n.Rhs[0]) != "" {
					found(n)
				}
			case *ast.IncDecStmt:
				if ofMoney(n.X) != "" {
					found(n)
				}
			case *ast.CallExpr:
				if fn, ok := n.Fun.(*ast.Ident); ok && (fn.Name == "min" || fn.Name == "max") && ofMoney(n) != "" {
					found(n)
				}
			}
			return true
		})
	})
	return out, err
}

// ofMoney is the amount that an expression names, "" where it names none.
func ofMoney(in ast.Node) (name string) {
	ast.Inspect(in, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(amounts, sel.Sel.Name) {
			name = sel.Sel.Name
		}
		return name == ""
	})
	return name
}

// takesOver are the packages whose init must run: a process that is a stage of
// a sandbox goes no further, so that it spends no time and memory on what the
// whole program initialises.
var takesOver = []string{contract + "/local/stage", contract + "/local/initd"}

// inits finds functions that run because their package is linked. What a
// program wrote registers itself.
func inits(p pkg) ([]string, error) {
	if slices.Contains(takesOver, p.ImportPath) {
		return nil, nil
	}
	var out []string
	err := eachFile(p, func(name string, f *ast.File) {
		if ast.IsGenerated(f) {
			return
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				out = append(out, fmt.Sprintf("%s: %s has an init: fill tables where they are declared, and call what is to happen", p.ImportPath,
					name))
			}
		}
	})
	return out, err
}

// uses finds where a package names these of another package, which it imports
// under its own name.
func uses(p pkg, of string, names []string, why string) ([]string, error) {
	var out []string
	err := eachFile(p, func(name string, f *ast.File) {
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
	})
	return out, err
}

func eachFile(p pkg, do func(name string, f *ast.File)) error {
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		do(name, f)
	}
	return nil
}
