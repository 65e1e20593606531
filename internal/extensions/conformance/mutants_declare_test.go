package conformance

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type declaration = extensions.Declaration

var declareMutants = map[string]mutant{
	"declare/narrows": {declare: func(_ brokenExtension, values map[string]any) (declaration, error) {
		if values["plan"] != "trial" {
			return declaration{}, nil
		}
		forever := 48 * time.Hour // the descriptor says a day
		return declaration{Narrowing: extensions.Narrowing{MaxTTL: &forever}}, nil
	}},
	"declare/accepts-a-config-that-opens": {declare: func(x brokenExtension, values map[string]any) (declaration, error) {
		if values["region"] == nil {
			return declaration{}, extensions.Errorf(extensions.KindInvalid, "config.region is missing")
		}
		return x.whole.Declare(values)
	}},
	"declare/is-pure": {declare: func(x brokenExtension, values map[string]any) (declaration, error) {
		d, err := x.whole.Declare(values)
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.seen["declared"] = !x.seen["declared"]; x.seen["declared"] {
			d.Find = &extensions.Find{Strength: extensions.FindNone}
		}
		return d, err
	}},
}
