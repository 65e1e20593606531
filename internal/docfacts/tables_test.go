package docfacts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sources are the texts of the files that match the patterns below the root.
func sources(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, p := range patterns {
		files, err := filepath.Glob(filepath.Join(root, p))
		if err != nil || len(files) == 0 {
			t.Fatalf("no file matches %s (%v)", p, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}

func firstGroups(re *regexp.Regexp, text string) []string {
	var out []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestLedgerPageNamesEveryTable(t *testing.T) {
	t.Parallel()
	code := firstGroups(regexp.MustCompile(`CREATE TABLE (?:IF NOT EXISTS )?([a-z_]+)`),
		sources(t, "internal/engine/ledger/sqlstore/migrate.go", "internal/engine/ledger/sqlstore/migrations/*.sql"))
	_, section, _ := strings.Cut(pages(t)["docs/design/ledger-reference.md"], "## Tables")
	section, _, _ = strings.Cut(section, "\n## ")
	var page []string
	for line := range strings.Lines(section) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		page = append(page, firstGroups(regexp.MustCompile("`([a-z_]+)`"), cell)...)
	}
	slices.Sort(page)
	if !slices.Equal(code, page) {
		t.Errorf("the ledger has the tables\n%q, its page\n%q", code, page)
	}
}

func TestArchitectureNamesEveryKindOfError(t *testing.T) {
	t.Parallel()
	code := firstGroups(regexp.MustCompile(`Kind\w+ +Kind = "([a-z_]+)"`), sources(t, "internal/extensions/errors.go"))
	_, section, _ := strings.Cut(pages(t)["docs/design/architecture.md"], "## Errors")
	section, _, _ = strings.Cut(section, "\n## ")
	var page []string
	for line := range strings.Lines(section) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for name := range strings.SplitSeq(cell, ", ") {
			if strings.HasPrefix(line, "| ") && name != "Kind" {
				page = append(page, name)
			}
		}
	}
	slices.Sort(page)
	if len(code) == 0 || !slices.Equal(code, page) {
		t.Errorf("the contract has the kinds\n%q, the page\n%q", code, page)
	}
}
