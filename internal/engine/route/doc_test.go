package route

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const designPage = "../../../docs/design/routing.md"

func rulesTable() string {
	var b strings.Builder
	b.WriteString("| Rule | Stage | … |\n|---|---|---|\n")
	for _, r := range Rules {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.ID, r.Stage, r.Refuses)
	}
	return b.String()
}

func needsTable() string {
	var b strings.Builder
	b.WriteString("| Power | Because |\n|---|---|\n")
	for _, n := range needs {
		fmt.Fprintf(&b, "| `%s` | %s |\n", n.power, n.why)
	}
	return b.String()
}

func TestTheDesignPageListsTheRulesAsTheyAre(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(designPage)
	if err != nil {
		t.Fatal(err)
	}
	want := string(page)
	for name, table := range map[string]string{"rules": rulesTable(), "needs": needsTable()} {
		before, rest, found := strings.Cut(want, "<!-- "+name+" -->\n")
		_, after, closed := strings.Cut(rest, "<!-- /"+name+" -->")
		if !found || !closed {
			t.Fatalf("%s has no section %s", designPage, name)
		}
		want = before + "<!-- " + name + " -->\n" + table + "<!-- /" + name + " -->" + after
	}
	if *update {
		if err := os.WriteFile(designPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want {
		t.Errorf("%s differs from the rules: run go test ./internal/engine/route -update", designPage)
	}
}

func TestRuleIDsAreUniqueAndNameTheirStage(t *testing.T) {
	t.Parallel()
	seen := map[Rule]bool{}
	for _, r := range Rules {
		if seen[r.ID] || !strings.HasPrefix(string(r.ID), string(r.Stage)+".") || r.Refuses == "" || r.passes == nil || r.tell == nil {
			t.Errorf("%+v", r)
		}
		seen[r.ID] = true
	}
}
