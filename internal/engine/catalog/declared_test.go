package catalog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
)

// declarer is the local extension, and what it declares for a config.
type declarer struct {
	extensions.Extension
	declare func(values map[string]any) (extensions.Declaration, error)
}

func (x declarer) Declare(values map[string]any) (extensions.Declaration, error) {
	return x.declare(values)
}

func TestABindingHasItsOwnDeclaration(t *testing.T) {
	t.Parallel()
	hour, sweep := time.Hour, extensions.ExpirySweep
	x := declarer{local.New(), func(values map[string]any) (extensions.Declaration, error) {
		switch values["launcher"] {
		case "bubblewrap":
			return extensions.Declaration{Narrowing: extensions.Narrowing{MaxTTL: &hour, Expiry: &sweep},
				Powers: []extensions.Power{extensions.PowerExec}, Find: &extensions.Find{Strength: extensions.FindNone}}, nil
		case "namespaces":
			return extensions.Declaration{Places: []extensions.Place{extensions.PlaceHost}}, nil
		case "auto":
			return extensions.Declaration{}, extensions.Errorf(extensions.KindInvalid, "config.launcher: not today")
		}
		return extensions.Declaration{}, nil
	}}
	load := func(binding string) (*catalog.Catalog, error) {
		return catalog.Load([]string{folder(t, map[string]string{"extensions/ext.x.yaml": "id: ext.x\nhandler: local\n" + binding})},
			[]extensions.Extension{x}, today)
	}
	c, err := load("config: { launcher: bubblewrap }\ncapabilities: { max_ttl: 30m }\n")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := c.Binding("ext.x")
	if d := b.Descriptor; d.Has(extensions.PowerSnapshot) || !d.Has(extensions.PowerExec) || d.Find.Strength != extensions.FindNone ||
		d.Capabilities.Expiry != sweep || d.Capabilities.MaxTTL != time.Hour || d.Capabilities.ExtendTTL != extensions.ExtendNone ||
		d.Capabilities.CapacityQuery {
		t.Errorf("the narrowed binding declares %+v", d)
	}
	if b.Capabilities.MaxTTL != 30*time.Minute || b.Capabilities.Expiry != sweep {
		t.Errorf("the catalog's narrowing does not start from the declaration: %+v", b.Capabilities)
	}
	whole, _ := c.Binding("ext.local")
	if d := whole.Descriptor; !d.Has(extensions.PowerSnapshot) || d.Capabilities.Expiry != extensions.ExpiryHost {
		t.Errorf("the other binding declares %+v", d)
	}
	for binding, says := range map[string]string{
		"config: { launcher: namespaces }\n":                                     "declares more for a binding",
		"config: { launcher: auto }\n":                                           "not today",
		"config: { launcher: bubblewrap }\ncapabilities: { max_ttl: 2h }\n":      "wider than what the extension declares",
		"config: { launcher: bubblewrap }\ncapabilities: { extend_ttl: both }\n": "wider than what the extension declares",
	} {
		if _, err := load(binding); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "ext.x.yaml:") {
			t.Errorf("%q: %v", binding, err)
		}
	}
}
