package strictyaml_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func decode(file string, data []byte, into any) error {
	_, err := strictyaml.DecodePositions(file, data, into)
	return err
}

func ptr[T any](v T) *T { return &v }

func TestEveryFormIsDecoded(t *testing.T) {
	t.Parallel()
	const text = `
name: x
note: "1.10"
on: false
count: -5
ratio: 2
list: []
env: { A: "1" }
inner: { level: a }
by_name: { one: &o { access: b }, two: *o }
free: [1, 2.5, "3", true, ~, { k: 2026-11-21 }]
forms: word
when: 2026-11-21T10:00:00Z
levels: { a: [1, 2] }
`
	var got thing
	if err := decode("a.yaml", []byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := thing{
		Name: "x", Note: ptr("1.10"), On: ptr(false), Count: -5, Ratio: 2, List: []string{}, Env: map[string]string{"A": "1"},
		Inner: &inner{Level: "a"}, ByName: map[string]inner{"one": {Access: "b"}, "two": {Access: "b"}},
		Free:  []any{int64(1), 2.5, "3", true, nil, map[string]any{"k": "2026-11-21"}},
		Forms: forms{"word"}, When: "2026-11-21T10:00:00Z", Levels: map[string][]int64{"a": {1, 2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatIsRightIsDecodedBesideMistakes(t *testing.T) {
	t.Parallel()
	var got thing
	pos, err := strictyaml.DecodePositions("a.yaml", []byte("name: x\ncount: y\nlist: [a, b]\n"), &got)
	if err == nil || got.Name != "x" || len(got.List) != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if line, column := pos.At("list", "1"); line != 3 || column != 11 {
		t.Errorf("list.1 is at %d:%d", line, column)
	}
}

func TestPositionsFollowAliasesAndStopWhereThePathEnds(t *testing.T) {
	t.Parallel()
	const text = "inner: &i\n  level: a\nby_name: { one: *i }\n"
	pos, err := strictyaml.DecodePositions("a.yaml", []byte(text), &thing{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path         []string
		line, column int
		has          bool
	}{
		{[]string{"by_name", "one", "level"}, 2, 10, true},
		{[]string{"by_name", "one"}, 3, 17, true},
		{[]string{"by_name", "two", "level"}, 3, 10, false},
		{[]string{"nowhere"}, 1, 1, false},
		{nil, 1, 1, true},
	} {
		if line, column := pos.At(c.path...); line != c.line || column != c.column || pos.Has(c.path...) != c.has {
			t.Errorf("%v is at %d:%d, has %v; want %d:%d, %v", c.path, line, column, pos.Has(c.path...), c.line, c.column, c.has)
		}
	}
	var none *strictyaml.Positions
	if got := none.Errorf([]string{"a"}, "bad").Error(); got != "bad" {
		t.Errorf("without positions: %q", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"bytes", "name: " + strings.Repeat("x", strictyaml.MaxBytes), "a.yaml: the file has 1048582 bytes; at most 1048576 are read"},
		{"depth", "free: " + strings.Repeat("[", 60) + strings.Repeat("]", 60), "a.yaml:1:47: nested deeper than 40 levels"},
		{"values", "free: [" + strings.Repeat("1,", strictyaml.MaxNodes) + "]", "more than 100000 values, aliases followed"},
		{"key", "env: { " + strings.Repeat("k", 300) + ": v }", "a.yaml:1:8: a key of 300 bytes; at most 256 are accepted"},
		{"utf-8", "name: a\nnote: \xff\n", "a.yaml:2:7: byte 0xff is not UTF-8"},
		{"NUL", "name: a\x00b\n", "a.yaml:1:8: control character U+0000"},
		{"escape", "name: a\nnote: é\x1b[31m\n", "a.yaml:2:8: control character U+001B"},
		{"line separator", "name: a\u2028b\n", "a.yaml:1:8: control character U+2028"},
		{"old line ends", "name: a\rnote: \x07", "a.yaml:2:7: control character U+0007"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := decode("a.yaml", []byte(c.text), &thing{})
			if err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestManyMistakesAreToldUpToABound(t *testing.T) {
	t.Parallel()
	err := decode("a.yaml", []byte("list:\n"+strings.Repeat("- 1\n", 5000)), &thing{})
	var list strictyaml.Errors
	if !errors.As(err, &list) || len(list) != 50 {
		t.Fatalf("%d mistakes told", len(list))
	}
}

func TestWindowsLineEndsCountAsOne(t *testing.T) {
	t.Parallel()
	err := decode("a.yaml", []byte("name: a\r\nnme: b\r\n"), &thing{})
	if want := `a.yaml:2:1: unknown key "nme" (did you mean "name"?)`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestErrorsAreOfTheContract(t *testing.T) {
	t.Parallel()
	lone := &strictyaml.Error{File: "a.yaml", Line: 2, Column: 3, Msg: "bad", Suggestion: "good"}
	if got := lone.Error(); got != `a.yaml:2:3: bad (did you mean "good"?)` {
		t.Errorf("text: %s", got)
	}
	if !extensions.IsKind(lone, extensions.KindInvalid) {
		t.Error("a lone mistake is not invalid")
	}
	err := strictyaml.Errors{{File: "b", Line: 1, Msg: "x"}, {File: "a", Line: 9, Msg: "y"}, {File: "a", Line: 2, Column: 7, Msg: "z"},
		{File: "a", Line: 9, Msg: "y"}}.Err()
	if want := "a:2:7: z\na:9: y\nb:1: x"; err.Error() != want || !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("got %v", err)
	}
	var one *strictyaml.Error
	if !errors.As(err, &one) || one.Msg != "z" {
		t.Errorf("the first mistake is not found: %v", one)
	}
	if err := (strictyaml.Errors{}).Err(); err != nil {
		t.Errorf("no mistakes make %v", err)
	}
}

func TestNearestOffersLikelySlipsOnly(t *testing.T) {
	t.Parallel()
	known := []string{"isolation", "network", "workspace", "ttl", "inputs"}
	for word, want := range map[string]string{
		"isolaton": "isolation", "netwrok": "network", "ttk": "ttl", "input": "inputs",
		"zebra": "", "x": "", "": "", strings.Repeat("n", 5000): "",
	} {
		if got := strictyaml.Nearest(word, known); got != want {
			t.Errorf("nearest of %.20q: %q, want %q", word, got, want)
		}
	}
	if got := strictyaml.NearestN("ac", []string{"ad", "ab", "abcdef", "ac"}, 2); !cmp.Equal(got, []string{"ac", "ab"}) {
		t.Errorf("nearest two: %v", got)
	}
}
