package cli

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var update = flag.Bool("update", false, "write the reference of the command line instead of comparing it")

const referencePage = "../../docs/design/command-line.md"

// The page is what the commands say of themselves.
func TestTheReferenceIsOfTheseCommands(t *testing.T) {
	for _, name := range []string{"SANDBOXER_CATALOG", "SANDBOXER_ACCOUNT"} {
		t.Setenv(name, "") // help prints what they hold
	}
	a := &app{out: io.Discard, err: io.Discard}
	root := a.rootCommand()
	var b strings.Builder
	b.WriteString("# Command line\n\nWhat `sandboxer COMMAND --help` says. `go test ./internal/cli -run TestTheReference -update` " +
		"writes this page.\n")
	section(&b, root)
	if *update {
		if err := os.WriteFile(referencePage, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != b.String() {
		t.Error("the page differs from the commands; write it anew: go test ./internal/cli -run TestTheReference -update")
	}
}

// An id in an example is one that could be.
func TestTheIDsOfTheReferenceHaveTheFormOfOne(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`\b[a-z]+-[a-z0-9]{20}\b`).FindAllString(string(page), -1)
	for _, id := range ids {
		if _, err := extensions.ParseID(id); err != nil && !extensions.ValidSnapshotID(id) {
			t.Errorf("%q is the id of nothing", id)
		}
	}
	if len(ids) == 0 {
		t.Error("the page has no id")
	}
}

func section(b *strings.Builder, c *cobra.Command) {
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n```text\n%s\n", c.CommandPath(), strings.TrimSpace(text))
	if c.Runnable() {
		fmt.Fprintf(b, "\nUsage:\n  %s\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	if c.HasAvailableLocalFlags() {
		fmt.Fprintf(b, "\nFlags:\n%s", c.LocalFlags().FlagUsagesWrapped(100))
	}
	b.WriteString("```\n")
	for _, child := range c.Commands() {
		if !child.Hidden {
			section(b, child)
		}
	}
}
