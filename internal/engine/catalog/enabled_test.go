package catalog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestEnabledIsReadStrictly(t *testing.T) {
	t.Parallel()
	vendor := extensions.Descriptor{Handler: "rent", Title: "R", Places: []extensions.Place{extensions.PlaceAccount}}
	own := extensions.Descriptor{Handler: "own", Title: "O", Places: []extensions.Place{extensions.PlaceMachine}}
	for text, want := range map[string]string{
		"handler: rent\n":                     "",
		"handler: rent\nenabled: true\n":      "true",
		"handler: rent\nenabled: false\n":     "false",
		"handler: own\nenabled: true\n":       "",
		"handler: own\nenabled: false\n":      "false",
		"handler: rent\nenabled: \"yes\"\n":   "extensions/a.yaml:3",
		"handler: rent\nenabled: 1\n":         "extensions/a.yaml:3",
		"handler: rent\nenable: true\n":       "unknown key",
		"handler: rent\nconfig: {}\nenabled:": "enabled is true or false",
	} {
		c, err := catalog.Load([]string{folder(t, map[string]string{"extensions/a.yaml": "id: ext.a\n" + text})},
			[]extensions.Extension{described{vendor}, described{own}}, time.Now())
		if err != nil {
			if want == "" || want == "true" || want == "false" || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", text, err, want)
			}
			continue
		}
		b, _ := c.Binding("ext.a")
		got := ""
		if b.Enabled != nil {
			got = map[bool]string{true: "true", false: "false"}[*b.Enabled]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
