package composessh

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext/shtexttest"
)

// calls maps each function of a script to the words of commands in it; "" is
// what runs when the script does.
func calls(t testing.TB, name, text string) map[string][]string {
	t.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), name)
	must(t, err)
	all := map[string][]string{"": nil}
	var in func(function string) func(syntax.Node) bool
	in = func(function string) func(syntax.Node) bool {
		return func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.FuncDecl:
				all[n.Name.Value] = append(all[n.Name.Value], "")
				syntax.Walk(n.Body, in(n.Name.Value))
				return false
			case *syntax.CallExpr:
				for _, word := range n.Args { // a function may be an argument: quietly, bounded
					all[function] = append(all[function], word.Lit())
				}
			}
			return true
		}
	}
	syntax.Walk(file, in(""))
	return all
}

// A script is put together from files, and a shell finds out only when it gets
// there that a function is in none of them.
func TestEveryScriptHasWhatItCalls(t *testing.T) {
	t.Parallel()
	ours := map[string][]string{}
	for _, from := range scripts {
		for name, text := range shtexttest.Programs(t, from) {
			maps.Copy(ours, calls(t, name, text))
		}
	}
	delete(ours, "json_string") // whoever runs the script brings it; inside.sh has one of its own
	// What is called by a name that is put together, and what a variable keeps from
	// being called where its file is missing.
	dynamic := []string{"", "remove_containers", "remove_networks", "remove_volumes", "reap", "release", "abandoned", "adrift", "forget",
		"guard", "regain"}
	uncalled := map[string][]string{"status": {"firewall_check"},
		"create-plain": {"origin_get", "origin_images", "refill_workspace", "refill_volumes", "build_images", "ready_probe"}}
	all := operations()
	maps.Copy(all, map[string]string{"exec": script(execFiles...), "files": script(filesFiles...), "logs": script(logsFiles...),
		"relay": script(relayFiles...), "read": script(readFiles...)})
	for name, text := range all {
		defined := calls(t, name, text)
		seen, todo := map[string]bool{}, slices.Clone(dynamic)
		for len(todo) > 0 {
			function := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if seen[function] {
				continue
			}
			seen[function] = true
			body, here := defined[function]
			_, somewhere := ours[function]
			// A plain word may be meant as one: only names of two words are sure to be functions.
			if !here && somewhere && strings.Contains(function, "_") && !slices.Contains(uncalled[name], function) && !slices.Contains(dynamic, function) {
				t.Errorf("%s calls %s, which none of its files has", name, function)
			}
			todo = append(todo, body...)
		}
	}
}
