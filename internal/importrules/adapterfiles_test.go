package importrules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const contractDir = "../extensions"

// adapterFiles says in which file of an adapter each method of the contract
// is; <x> is the adapter's own name. CONTRIBUTING says the same.
var adapterFiles = map[string][]string{
	"<x>.go":       {"Open", "Close"},
	"describe.go":  {"Describe", "Declare", "OnHost"},
	"check.go":     {"CheckSpec"},
	"provision.go": {"Provision"},
	"ready.go":     {"WaitReady"},
	"status.go":    {"Status", "Find"},
	"teardown.go":  {"Teardown"},
	"exec.go":      {"Exec"},
	"logs.go":      {"Logs"},
	"files.go":     {"Upload", "Download"},
	"ports.go":     {"Dial"},
	"url.go":       {"URL"},
	"snapshot.go":  {"Snapshot", "FindSnapshot", "StatSnapshot", "ReadSnapshot", "DeleteSnapshot"},
	"fork.go":      {"CanFork"},
	"pause.go":     {"Pause", "Resume"},
	"extend.go":    {"Extend", "SetGeneration"},
	"usage.go":     {"Usage", "Estimate", "Capacity"},
	"probe.go":     {"Probe"},
	"image.go":     {"PrepareImage"},
}

func parsed(t *testing.T, folder string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no Go files in %s: %v", folder, err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = f
	}
	return files
}

// methods lists the methods of a package: type → method → file.
func methods(files map[string]*ast.File) map[string]map[string]string {
	all := map[string]map[string]string{}
	for name, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			of := fn.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			receiver, ok := of.(*ast.Ident)
			if !ok {
				continue
			}
			if all[receiver.Name] == nil {
				all[receiver.Name] = map[string]string{}
			}
			all[receiver.Name][fn.Name.Name] = name
		}
	}
	return all
}

func TestAdaptersHaveTheSameFilesForTheSamePowers(t *testing.T) {
	t.Parallel()
	folders, err := os.ReadDir(contractDir)
	if err != nil {
		t.Fatal(err)
	}
	adapters := 0
	for _, folder := range folders {
		adapter := folder.Name()
		if !folder.IsDir() || slices.Contains(sharedByAdapters, adapter) {
			continue
		}
		adapters++
		files := parsed(t, filepath.Join(contractDir, adapter))
		for _, always := range []string{adapter + ".go", "config.go", "errors.go"} {
			if files[always] == nil {
				t.Errorf("%s has no %s", adapter, always)
			}
		}
		if _, err := os.Stat(filepath.Join(contractDir, adapter, "conformance_test.go")); err != nil {
			t.Errorf("%s is not held to the contract: %v", adapter, err)
		}
		for receiver, at := range methods(files) {
			if at["Describe"] == "" && at["Provision"] == "" {
				continue // neither an Extension nor a Backend
			}
			for want, names := range adapterFiles {
				want = strings.ReplaceAll(want, "<x>", adapter)
				for _, name := range names {
					if at[name] != "" && at[name] != want {
						t.Errorf("%s: method %s of %s is in %s, not in %s", adapter, name, receiver, at[name], want)
					}
				}
			}
		}
	}
	if adapters < 2 {
		t.Fatalf("%d adapters were found", adapters)
	}
}

func TestEveryPowerHasItsFile(t *testing.T) {
	t.Parallel()
	contributing, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for file, names := range adapterFiles {
		if !strings.Contains(string(contributing), strings.ReplaceAll("`"+file+"`", "<x>", "<name>")) {
			t.Errorf("CONTRIBUTING does not name %s", file)
		}
		for _, name := range names {
			known[name] = true
		}
	}
	found := 0
	for _, d := range parsed(t, contractDir)["powers.go"].Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			i, ok := n.(*ast.InterfaceType)
			if !ok {
				return true
			}
			for _, m := range i.Methods.List {
				for _, name := range m.Names {
					if found++; !known[name.Name] {
						t.Errorf("no file is said for a power's method %s", name.Name)
					}
				}
			}
			return true
		})
	}
	if found < 10 {
		t.Fatalf("only %d methods of powers were found", found)
	}
}
