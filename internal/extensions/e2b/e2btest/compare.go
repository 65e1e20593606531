package e2btest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Script writes calls down, for a golden file.
func Script(calls []Call) string {
	var out strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&out, "%s%s\n", c.On, c.Query)
		for _, h := range c.Headers {
			fmt.Fprintf(&out, "  %s\n", h)
		}
		if c.Body != "" {
			fmt.Fprintf(&out, "%s\n", c.Body)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// SDKCalls are what the vendor's own SDK asks for one sandbox's life, as this package's tests heard it.
func SDKCalls(t testing.TB) []Call {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "internal/extensions/e2b/e2btest/testdata/sdk.calls"))
	if err != nil {
		t.Fatal(err)
	}
	return parse(string(text))
}

// parse reads what Script wrote.
func parse(script string) []Call {
	var out []Call
	for _, block := range strings.Split(strings.TrimSpace(script), "\n\n") {
		lines := strings.Split(block, "\n")
		c := Call{}
		on, query, asked := strings.Cut(lines[0], "?")
		if c.On = on; asked {
			c.Query = "?" + query
		}
		for lines = lines[1:]; len(lines) > 0 && strings.HasPrefix(lines[0], "  "); lines = lines[1:] {
			c.Headers = append(c.Headers, strings.TrimSpace(lines[0]))
		}
		c.Body = strings.Join(lines, "\n")
		out = append(out, c)
	}
	return out
}

// Difference tells, operation by operation, which of a client's calls another never makes, by method, path,
// query and body. How often and in which order each makes them is not compared.
func Difference(oneName string, one []Call, otherName string, other []Call) string {
	a, b := distinct(one), distinct(other)
	var out strings.Builder
	for _, on := range slices.Compact(slices.Sorted(slices.Values(append(sortedKeys(a), sortedKeys(b)...)))) {
		onlyA, onlyB := without(a[on], b[on]), without(b[on], a[on])
		fmt.Fprintf(&out, "%s\n", on)
		if len(onlyA)+len(onlyB) == 0 {
			out.WriteString("  the same\n")
		}
		for _, c := range onlyA {
			fmt.Fprintf(&out, "- %s: %s\n", oneName, c)
		}
		for _, c := range onlyB {
			fmt.Fprintf(&out, "+ %s: %s\n", otherName, c)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// distinct are the different queries and bodies of each operation.
func distinct(calls []Call) map[string][]string {
	out := map[string][]string{}
	for _, c := range calls {
		what := strings.TrimSpace(c.Query + " " + c.Body)
		if what == "" {
			what = "(no query, no body)"
		}
		if !slices.Contains(out[c.On], what) {
			out[c.On] = append(out[c.On], what)
		}
	}
	return out
}

func without(these, those []string) []string {
	return slices.DeleteFunc(slices.Clone(these), func(s string) bool { return slices.Contains(those, s) })
}
