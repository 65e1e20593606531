package compose

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const policyPage = "../../../../docs/design/compose-ssh.md"

// policyTable is the rules of the Compose policy, for people.
func policyTable() string {
	var b strings.Builder
	b.WriteString("| Rule | Refuses | Because | Grant |\n|---|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ").Replace
	for _, r := range rules {
		grant := "–"
		if r.Grantable && r.Argument != "" {
			grant = "`" + r.ID + ":" + r.Argument + "`"
		} else if r.Grantable {
			grant = "`" + r.ID + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.ID, cell(r.Summary), cell(r.Reason), cell(grant))
	}
	return b.String()
}

// TestPolicyPageIsCurrent compares the table of rules in the page with the
// rules that stacks are judged by.
func TestPolicyPageIsCurrent(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(policyPage)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), "\r\n", "\n")
	head, rest, ok := strings.Cut(text, "<!-- rules:")
	mark, rest, ok2 := strings.Cut(rest, "-->\n")
	have, tail, ok3 := strings.Cut(rest, "<!-- /rules -->")
	if !ok || !ok2 || !ok3 {
		t.Fatalf("%s has no place for the rules", policyPage)
	}
	want := "\n" + policyTable() + "\n"
	if *update {
		if err := os.WriteFile(policyPage, []byte(head+"<!-- rules:"+mark+"-->\n"+want+"<!-- /rules -->"+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Errorf("%s differs from the rules; write it anew: go test ./internal/extensions/internal/compose -run TestPolicy -update", policyPage)
	}
}
