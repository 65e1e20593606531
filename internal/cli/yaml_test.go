package cli

import (
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// What looks like another type in YAML stays the text that it is.
func TestYAMLSaysWhatJSONSays(t *testing.T) {
	t.Parallel()
	type view struct {
		Zero  string         `json:"zero"`
		Text  []string       `json:"a_list"`
		Count int64          `json:"count"`
		None  *string        `json:"none"`
		Empty map[string]any `json:"empty"`
		Part  float64        `json:"part"`
	}
	text := []string{"yes", "null", "0x1f", "1.0.0", "2026-01-02", "a: b", "two\nlines\n", "\x7f\x1b", "ünï", " ", "#", "~", "1_000"}
	var out strings.Builder
	if err := encodeYAML(&out, []view{{Zero: "0", Text: text, Count: 1 << 60, Empty: map[string]any{}, Part: 0.25}}); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := yaml.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatalf("%v:\n%s", err, &out)
	}
	list := make([]any, len(text))
	for i := range text {
		list[i] = text[i]
	}
	want := []map[string]any{{"zero": "0", "a_list": list, "count": 1 << 60, "none": nil, "empty": map[string]any{}, "part": 0.25}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%#v\nfrom\n%s", got, &out)
	}
	if !strings.HasPrefix(out.String(), "---\n- zero: ") {
		t.Errorf("the order changed:\n%s", &out)
	}
}
