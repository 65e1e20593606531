package importrules

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// load asks `go list` for the module as it builds on goos.
func load(t *testing.T, goos string) graph {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Name,Dir,GoFiles,Imports,Deps,Standard", module+"/...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, complaints.String())
	}
	g := graph{packages: map[string]pkg{}, standard: map[string]bool{}}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p struct {
			pkg
			Standard bool
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return g
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Standard {
			g.standard[p.ImportPath] = true
		}
		if within(p.ImportPath, module) {
			g.packages[p.ImportPath] = p.pkg
		}
	}
}

func TestTheLayersHold(t *testing.T) {
	t.Parallel()
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			g := load(t, goos)
			for _, want := range []string{contract, engine, module} {
				if _, ok := g.packages[want]; !ok {
					t.Fatalf("go list did not find %s: the rules would judge nothing", want)
				}
			}
			for _, b := range g.breaches() {
				t.Error(b)
			}
			for _, p := range g.packages {
				arms, err1 := armings(p)
				begun, err2 := inits(p)
				if err := errors.Join(err1, err2); err != nil {
					t.Fatal(err)
				}
				for _, b := range append(arms, begun...) {
					t.Error(b)
				}
			}
			counts, err := sums(g.packages[moneyStore])
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range counts {
				t.Error(b)
			}
			for _, name := range purePackages {
				p, ok := g.packages[name]
				if !ok {
					t.Errorf("there is no package %s", name)
				}
				reads, err := clockReads(p)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range append(impureImport(p), reads...) {
					t.Error(b)
				}
			}
		})
	}
}

// A rule nobody can break proves nothing: each row breaks exactly one.
func TestEachRuleCanFail(t *testing.T) {
	t.Parallel()
	std := map[string]bool{"errors": true, "net": true, "testing": true}
	for name, c := range map[string]struct {
		at      string
		imports string
		want    string
	}{
		"contract with a dependency":        {contract, "gopkg.in/yaml.v3", "standard library only"},
		"adapter knows the engine":          {contract + "/local", engine, "the contract and itself"},
		"adapter knows another":             {contract + "/local", contract + "/docker", "the contract and itself"},
		"adapter speaks Terraform":          {contract + "/local", "github.com/hashicorp/terraform-plugin-log/tflog", "the contract and itself"},
		"engine names an adapter":           {engine + "/route", contract + "/local", "the contract only"},
		"engine knows the provider":         {engine, provider, "the contract only"},
		"a room knows the engine":           {engine + "/route", engine, "no room knows the engine"},
		"a place knows the ledger":          {engine + "/place", engine + "/ledger", "no ledger"},
		"the bank knows the store":          {engine + "/ledger/bank", engine + "/ledger/sqlstore", "money alone"},
		"the bank asks a database":          {engine + "/ledger/bank", "database/sql", "money alone"},
		"the chain asks a database":         {engine + "/ledger/chain", "database/sql", "knows no store"},
		"types know a database":             {engine + "/ledger", "database/sql", "no database"},
		"the store prices":                  {engine + "/ledger/sqlstore", engine + "/meter", "no sums of money"},
		"a shared room knows another":       {contract + "/internal/deadline", contract + "/internal/remote", "its neighbors only"},
		"a shared room without neighbors":   {contract + "/internal/unknown", "errors", "name them"},
		"a shared room dials":               {contract + "/internal/ready", "net/http", "its neighbors only"},
		"engine dials":                      {engine, "net", "never dials"},
		"provider goes below the engine":    {provider, engine + "/ledger", "nothing below it"},
		"cli goes below the engine":         {cli, engine + "/catalog", "nothing below it"},
		"cli speaks Terraform":              {cli, "github.com/hashicorp/terraform-plugin-go/tfprotov6", "speak Terraform"},
		"main names an adapter":             {module, contract + "/local", "only extensions/all"},
		"all forgets an adapter":            {all, "errors", "does not list the adapter docker"},
		"production code imports testing":   {engine, "testing", "test code"},
		"production code imports a suite":   {engine, exttest, "test code"},
		"main reaches what arms failpoints": {module, failpoints + "/failpointtest", "a release holds no test code"},
		"a package for tests alone":         {engine + "/printer", "errors", "main does not reach it"},
		"a name that says nothing":          {engine + "/helpers", "errors", "says nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := graph{standard: std, packages: map[string]pkg{
				contract + "/docker": {ImportPath: contract + "/docker"},
				c.at:                 {ImportPath: c.at, GoFiles: []string{"a.go"}, Imports: []string{c.imports}, Deps: []string{c.imports}},
			}}
			found := strings.Join(g.breaches(), "\n")
			if !strings.Contains(found, c.want) {
				t.Errorf("the breach went unseen; found:\n%s", found)
			}
		})
	}
}

func TestArmingAndInitAreSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	src := "package engine\n\nfunc arm() { failpoint.Hook.Store(nil) }\n\nfunc init() { arm() }\n"
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	p := pkg{ImportPath: engine, Dir: dir, GoFiles: []string{"a.go"}}
	if got, err := armings(p); err != nil || len(got) != 1 || !strings.Contains(got[0], "failpoint.Hook") {
		t.Errorf("arming: %v, %v", got, err)
	}
	if got, err := inits(p); err != nil || len(got) != 1 || !strings.Contains(got[0], "has an init") {
		t.Errorf("init: %v, %v", got, err)
	}
	made := "// Code generated by hand. DO NOT EDIT.\n\n" + src
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(made), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := inits(p); err != nil || len(got) != 0 {
		t.Errorf("init that a program wrote: %v, %v", got, err)
	}
}

func TestSumsOfMoneyAreSeen(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		"a := b.Reserved + x": 1, "b.Spent += 3": 1, "if b.Available() < x { return }": 1, "x.Amount++": 1, "a := min(b.Limit, 3)": 1,
		"a := x.Amount == y.Amount": 0, "a := x.Seq + 1": 0, "b.Reserved = c.Reserved": 0,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package store\n\nfunc f() { "+body+" }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := sums(pkg{ImportPath: moneyStore, Dir: dir, GoFiles: []string{"a.go"}})
		if err != nil || len(got) != want {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}

func TestPureRulesCanFail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	src := "package meter\n\nimport \"time\"\n\nvar start = time.Now()\n\nvar day = 24 * time.Hour\n"
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	p := pkg{ImportPath: engine + "/meter", Dir: dir, GoFiles: []string{"a.go"}, Imports: []string{"os", "time"}}
	if got := impureImport(p); len(got) != 1 {
		t.Errorf("want one impure import (os), got %v", got)
	}
	got, err := clockReads(p)
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "time.Now") {
		t.Errorf("want one clock read (time.Now), got %v, %v", got, err)
	}
}
