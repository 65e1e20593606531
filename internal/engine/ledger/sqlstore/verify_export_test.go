package sqlstore_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
)

// exported are the events of both streams, a line each.
func exported(t *testing.T, l *ledger.Ledger) (lines []string) {
	t.Helper()
	for _, stream := range []string{"acme", "umbrella"} {
		events, err := l.Events(ctx, stream, 1, 0)
		if err != nil || len(events) == 0 {
			t.Fatal(events, err)
		}
		for _, e := range events {
			lines = append(lines, string(e.CloudEvent))
		}
	}
	return lines
}

func TestAnExportIsCheckedByItself(t *testing.T) {
	t.Parallel()
	address := newFile(t)
	story(t, address)
	l, err := sqlstore.Open(ctx, address, sqlstore.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	whole := exported(t, l)
	report, err := l.Verify(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		alter func([]string) []string
		words string // "" = nothing is found
	}{
		"as it is":       {func(s []string) []string { return s }, ""},
		"empty lines":    {func(s []string) []string { return slices.Insert(s, 3, "", "  ") }, ""},
		"formatted anew": {func(s []string) []string { s[2] = anew(t, s[2]); return s }, ""},
		"streams mixed":  {func(s []string) []string { return append(s[len(s)-1:], s[:len(s)-1]...) }, ""},
		"begins later":   {func(s []string) []string { return s[2:] }, "line 1: the file begins with event 3 of stream \"acme\""},
		"one taken out":  {func(s []string) []string { return slices.Delete(s, 4, 5) }, "line 5: event 6 of stream \"acme\" follows event 4"},
		"two swapped": {func(s []string) []string { s[4], s[5] = s[5], s[4]; return s },
			"line 6: event 5 of stream \"acme\" comes after event 6"},
		"one twice": {func(s []string) []string { return slices.Insert(s, 4, s[4]) },
			"line 6: event 5 of stream \"acme\" comes after event 5"},
		"text altered": {func(s []string) []string { s[0] = strings.Replace(s[0], "hello", "bribe", 1); return s }, "line 1: "},
		"amount altered": {func(s []string) []string { s[0] = strings.Replace(s[0], `"amount":100`, `"amount":900`, 1); return s },
			"was altered"},
		"number altered": {func(s []string) []string { s[3] = strings.Replace(s[3], "0000004\"", "0000009\"", 1); return s }, "line 4: "},
		"field added":    {func(s []string) []string { s[1] = strings.Replace(s[1], "{", `{"more":1,`, 1); return s }, "was altered"},
		"field twice": {func(s []string) []string { s[1] = strings.Replace(s[1], "{", `{"type":"other",`, 1); return s },
			`names "type" twice`},
		"cut in a line":    {func(s []string) []string { s[len(s)-1] = s[len(s)-1][:40]; return s }, "it is no event"},
		"something else":   {func(s []string) []string { return append(s, `{"id":"x"}`) }, "not a ledger event"},
		"no JSON":          {func(s []string) []string { return append(s, `hello`) }, "no event"},
		"the end cut off":  {func(s []string) []string { return s[:len(s)-1] }, ""},
		"nothing is there": {func([]string) []string { return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, err := chain.ReadExport(strings.NewReader(strings.Join(c.alter(slices.Clone(whole)), "\n")))
			if err != nil {
				t.Fatal(err)
			}
			found := strings.Join(x.Problems, "\n")
			if c.words == "" && found != "" || !strings.Contains(found, c.words) || c.words != "" && len(x.Problems) > 2 {
				t.Errorf("want %q, found %q", c.words, found)
			}
		})
	}
	t.Run("an end that was cut off shows by a head", func(t *testing.T) {
		t.Parallel()
		x, err := chain.ReadExport(strings.NewReader(strings.Join(whole[:len(whole)-2], "\n")))
		if err != nil || len(x.Problems) > 0 {
			t.Fatal(x.Problems, err)
		}
		if found := x.CompareHeads(report.Heads); len(found) != 1 || !strings.Contains(found[0], "acme") {
			t.Errorf("%q", found)
		}
	})
	t.Run("the ledger has what was exported, or shows that it was rewritten", func(t *testing.T) {
		t.Parallel()
		x, err := chain.ReadExport(strings.NewReader(strings.Join(whole, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := l.Verify(ctx, x.Events...); err != nil || len(r.Problems) > 0 || len(x.CompareHeads(r.Heads)) != 0 {
			t.Error(r.Problems, err)
		}
		v := newVault(t, newFile(t)) // another ledger, which took the place of this one
		if found := v.verify(x.Events...); len(found) != len(whole) {
			t.Errorf("%q", found)
		}
	})
}

func anew(t *testing.T, line string) string {
	t.Helper()
	var m map[string]any
	dec := json.NewDecoder(strings.NewReader(line))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(out), `,"`, `, "`)
}
