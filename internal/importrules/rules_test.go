// Package importrules holds the layers of the project in place: the tests
// fail when a package imports what it must not. The same rules are in
// .golangci.yml (depguard), where an editor shows them earlier.
package importrules

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const (
	module   = "github.com/sand-boxer/terraform-provider-sandboxer"
	contract = module + "/internal/extensions"
	engine   = module + "/internal/engine"
	provider = module + "/internal/provider"
	cli      = module + "/internal/cli"
	all      = contract + "/all"
	exttest  = contract + "/exttest"
	suite    = contract + "/conformance"

	failpoints = engine + "/failpoint"
	bench      = module + "/internal/bench"
)

// pkg is what `go list` says of one package of the module.
type pkg struct {
	ImportPath string
	Name       string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string // transitive
}

// graph is the module's packages by import path, and which of all
// dependencies are of the standard library.
type graph struct {
	packages map[string]pkg
	standard map[string]bool
}

// outlet is the package of the engine whose purpose is to speak to others over
// HTTP.
const outlet = engine + "/export"

// sharedByAdapters are the folders below the contract that are not adapters.
var sharedByAdapters = []string{"all", "conformance", "exttest", "hosttest", "internal", "tarstream", "webcall"}

// adapterOf returns the adapter's folder that an import path lies in.
func adapterOf(importPath string) (string, bool) {
	rest, ok := strings.CutPrefix(importPath, contract+"/")
	if !ok {
		return "", false
	}
	name, _, _ := strings.Cut(rest, "/")
	return name, !slices.Contains(sharedByAdapters, name)
}

func within(importPath, root string) bool {
	return importPath == root || strings.HasPrefix(importPath, root+"/")
}

// isTestPackage: a package of such a name and all below it.
func isTestPackage(importPath string) bool {
	return within(importPath, module) && slices.ContainsFunc(strings.Split(strings.TrimPrefix(importPath, module), "/"),
		func(name string) bool { return strings.HasSuffix(name, "test") })
}

func (g graph) adapters() []string {
	var out []string
	for p := range g.packages {
		if name, ok := adapterOf(p); ok && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// rule judges one package; each line it returns is a breach.
type rule func(g graph, p pkg) []string

var rules = []rule{contractIsStandardOnly, adaptersStandAlone, engineNamesNoAdapter, roomsKeepTheirFloor, theStorePricesNothing,
	sharedRoomsKnowTheirNeighbors, surfacesSeeTheEngineOnly,
	onlyProviderSpeaksTerraform, onlyAllNamesAdapters, testCodeStaysInTests, mainReachesNoTestCode, mainReachesAllElse, namesSaySomething}

func (g graph) breaches() []string {
	var out []string
	for _, p := range g.packages {
		for _, r := range rules {
			for _, b := range r(g, p) {
				out = append(out, strings.ReplaceAll(p.ImportPath+": "+b, module+"/", ""))
			}
		}
	}
	slices.Sort(out)
	return out
}

func forbid(imports []string, why string, bad func(string) bool) []string {
	var out []string
	for _, i := range imports {
		if bad(i) {
			out = append(out, fmt.Sprintf("imports %s: %s", i, why))
		}
	}
	return out
}

func contractIsStandardOnly(g graph, p pkg) []string {
	if p.ImportPath != contract {
		return nil
	}
	return forbid(p.Deps, "the contract depends on the standard library only", func(i string) bool { return !g.standard[i] })
}

func adaptersStandAlone(_ graph, p pkg) []string {
	self, ok := adapterOf(p.ImportPath)
	if !ok && !within(p.ImportPath, exttest) && !within(p.ImportPath, suite) && !within(p.ImportPath, contract+"/tarstream") &&
		!within(p.ImportPath, contract+"/webcall") && !within(p.ImportPath, contract+"/internal") {
		return nil
	}
	return forbid(p.Deps, "an adapter knows the contract and itself", func(i string) bool {
		other, isAdapter := adapterOf(i)
		return isAdapter && other != self || within(i, all) || terraform(i) ||
			within(i, module) && !within(i, contract)
	})
}

func engineNamesNoAdapter(_ graph, p pkg) []string {
	if !within(p.ImportPath, engine) {
		return nil
	}
	above := forbid(p.Deps, "the engine knows the contract only", func(i string) bool {
		_, adapter := adapterOf(i)
		return adapter || within(i, all) || within(i, contract+"/internal") || within(i, provider) || within(i, cli) || terraform(i)
	})
	if p.ImportPath == outlet || slices.Contains(p.Imports, "testing") { // test code runs the servers that tests talk to
		return above
	}
	dials := forbid(p.Imports, "the engine never dials", func(i string) bool {
		return i == "net" || i == "net/http" || within(i, "golang.org/x/crypto/ssh")
	})
	return append(above, dials...)
}

// aboveRoom are, for the rooms of the engine, those that each must not know,
// and why. None knows the engine itself.
var aboveRoom = map[string]struct {
	why string
	not []string
}{
	engine + "/flight":       {"work under way knows no rooms", []string{engine + "/place", engine + "/ledger", engine + "/catalog"}},
	engine + "/place":        {"places know no ledger", []string{engine + "/ledger"}},
	engine + "/notice":       {"a notice knows nothing", []string{engine, module + "/internal/extensions"}},
	engine + "/book":         {"the book knows no catalog and calls no place", []string{engine + "/catalog", engine + "/place"}},
	engine + "/plan":         {"a plan asks nobody", []string{engine + "/place", engine + "/book", engine + "/workspace"}},
	engine + "/account":      {"accounts call no place", []string{engine + "/place", engine + "/life"}},
	engine + "/life":         {"a life is carried out whatever the accounts show", []string{engine + "/account", engine + "/export"}},
	engine + "/ledger":       {"types know no database", []string{engine + "/ledger/sqlstore", "database/sql"}},
	engine + "/ledger/bank":  {"the bank knows money alone", []string{engine + "/ledger/chain", engine + "/ledger/sqlstore", "database/sql"}},
	engine + "/ledger/chain": {"the chain knows no store", []string{engine + "/ledger/sqlstore", "database/sql"}},
}

func roomsKeepTheirFloor(_ graph, p pkg) []string {
	if !within(p.ImportPath, engine) || p.ImportPath == engine || isTestPackage(p.ImportPath) {
		return nil
	}
	out := forbid(p.Deps, "no room knows the engine", func(i string) bool { return i == engine })
	room, ok := aboveRoom[p.ImportPath]
	if !ok {
		return out
	}
	return append(out, forbid(p.Deps, room.why, func(i string) bool {
		return slices.ContainsFunc(room.not, func(above string) bool { return within(i, above) })
	})...)
}

// neighbors are, for rooms that adapters share, the other rooms that each may use.
var neighbors = map[string][]string{
	"shtext": {}, "deadline": {}, "grpcline": {}, "frames": {}, "ociimage": {}, "ready": {"shtext"}, "netwall": {"shtext"},
	"hostlease": {"shtext", "deadline"}, "held": {}, "pace": {}, "shelf": {}, "labels": {}, "byname": {"looks", "ready"},
	"indoors": {"contents", "execwire", "ready", "tarbox"}, "looks": {}, "contents": {"execwire", "tarbox"}, "spool": {},
	"execwire": {"shtext", "deadline"}, "tarbox": {"shtext", "execwire", "spool"}, "compose": {"ociimage"},
	"rest": {}, "bucket": {"spool"}, "oidc": {"held"}, "remote": {"shtext"},
}

// outward are the rooms that dial a host or speak HTTP; no other one does.
var outward = []string{"rest", "bucket", "oidc", "remote"}

func sharedRoomsKnowTheirNeighbors(_ graph, p pkg) []string {
	const rooms = contract + "/internal/"
	at, ok := strings.CutPrefix(p.ImportPath, rooms)
	if !ok || strings.HasSuffix(at, "test") { // a suite for rooms or adapters
		return nil
	}
	known, ok := neighbors[at]
	if !ok {
		return []string{p.ImportPath + ": a shared room knows its neighbors only: name them"}
	}
	return forbid(p.Imports, "a shared room knows its neighbors only", func(i string) bool {
		name, room := strings.CutPrefix(i, rooms)
		dials := i == "net/http" || within(i, "golang.org/x/crypto/ssh")
		return room && !slices.Contains(known, name) || dials && !slices.Contains(outward, at)
	})
}

// theStorePricesNothing keeps prices from the room that writes what others decide.
func theStorePricesNothing(_ graph, p pkg) []string {
	if p.ImportPath != moneyStore {
		return nil
	}
	return forbid(p.Imports, "the store does no sums of money", func(i string) bool { return i == engine+"/meter" })
}

func surfacesSeeTheEngineOnly(_ graph, p pkg) []string {
	if !within(p.ImportPath, provider) && !within(p.ImportPath, cli) {
		return nil
	}
	return forbid(p.Imports, "provider and cli speak to the engine and nothing below it", func(i string) bool {
		return within(i, module) && i != engine && i != contract &&
			!(within(p.ImportPath, provider) && within(i, provider)) && !(within(p.ImportPath, cli) && within(i, cli))
	})
}

func terraform(importPath string) bool {
	return strings.HasPrefix(importPath, "github.com/hashicorp/terraform-plugin-")
}

func onlyProviderSpeaksTerraform(_ graph, p pkg) []string {
	if within(p.ImportPath, provider) || p.ImportPath == module {
		return nil
	}
	return forbid(p.Imports, "only the provider and main speak Terraform", terraform)
}

func onlyAllNamesAdapters(g graph, p pkg) []string {
	if p.ImportPath == all {
		var out []string
		for _, a := range g.adapters() {
			if !slices.Contains(p.Imports, contract+"/"+a) {
				out = append(out, "does not list the adapter "+a)
			}
		}
		return out
	}
	self, _ := adapterOf(p.ImportPath)
	return forbid(p.Imports, "only extensions/all names adapters", func(i string) bool {
		other, isAdapter := adapterOf(i)
		return isAdapter && other != self
	})
}

func testCodeStaysInTests(_ graph, p pkg) []string {
	if isTestPackage(p.ImportPath) {
		return nil
	}
	return forbid(p.Imports, "this is test code", func(i string) bool {
		return i == "testing" || isTestPackage(i) || within(i, "go.uber.org/goleak") || within(i, "pgregory.net/rapid") ||
			within(i, "github.com/rogpeppe/go-internal") || within(i, "github.com/hashicorp/terraform-plugin-testing")
	})
}

// mainReachesNoTestCode keeps from a release what arms its failpoints, above all.
func mainReachesNoTestCode(_ graph, p pkg) []string {
	if p.ImportPath != module {
		return nil
	}
	return forbid(p.Deps, "a release holds no test code", isTestPackage)
}

func mainReachesAllElse(g graph, p pkg) []string {
	if p.ImportPath == module || len(p.GoFiles) == 0 || isTestPackage(p.ImportPath) || within(p.ImportPath, bench) ||
		slices.Contains(g.packages[module].Deps, p.ImportPath) {
		return nil
	}
	return []string{"main does not reach it: what only tests use is test code, in a file or package of that name"}
}

func namesSaySomething(_ graph, p pkg) []string {
	for _, vague := range []string{"util", "utils", "common", "shared", "helper", "helpers", "model", "models", "misc"} {
		if path.Base(p.ImportPath) == vague || p.Name == vague {
			return []string{"the name " + vague + " says nothing: a type lives with the code that keeps its invariants"}
		}
	}
	return nil
}
