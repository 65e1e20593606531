package extensions_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/composessh"
)

func to[T any](v T) *T { return &v }

// A declaration narrows, and is refused where it is wider; of facts, only what is
// narrower counts.
func TestNarrowingNeverWidens(t *testing.T) {
	t.Parallel()
	d := composessh.New().Describe()
	d.Capabilities.MaxVCPU, d.Capabilities.MaxTTL = to(int64(4)), time.Hour
	d.Capabilities.Regions, d.Capabilities.SecretsAs = []string{"eu"}, []extensions.SecretDelivery{extensions.SecretsEnv}
	d.Capabilities.Limits = nil
	d.Find = extensions.Find{Strength: extensions.FindEventual, Settle: time.Minute}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	type declaration = extensions.Declaration
	narrowing := func(n extensions.Narrowing) declaration { return declaration{Narrowing: n} }
	for name, x := range map[string]struct {
		by    declaration
		holds func(extensions.Descriptor) bool // nil = it is wider
	}{
		"nothing": {declaration{},
			func(d extensions.Descriptor) bool { return d.Has(extensions.PowerExec) && d.Capabilities.GPU }},
		"sweep": {narrowing(extensions.Narrowing{Expiry: to(extensions.ExpirySweep)}),
			func(d extensions.Descriptor) bool { return d.Capabilities.Expiry == extensions.ExpirySweep }},
		"native":      {narrowing(extensions.Narrowing{Expiry: to(extensions.ExpiryNative)}), nil},
		"no such end": {narrowing(extensions.Narrowing{Expiry: to(extensions.Expiry("never"))}), nil},
		"less cpu": {narrowing(extensions.Narrowing{MaxVCPU: to(int64(2))}),
			func(d extensions.Descriptor) bool { return *d.Capabilities.MaxVCPU == 2 }},
		"more cpu":  {narrowing(extensions.Narrowing{MaxVCPU: to(int64(8))}), nil},
		"no longer": {narrowing(extensions.Narrowing{MaxTTL: to(2 * time.Hour)}), nil},
		"no arch": {narrowing(extensions.Narrowing{Arch: []string{"arm64"}}),
			func(d extensions.Descriptor) bool { return slices.Equal(d.Capabilities.Arch, []string{"arm64"}) }},
		"another os": {narrowing(extensions.Narrowing{OS: []string{"darwin"}}), nil},
		"region":     {narrowing(extensions.Narrowing{Regions: []string{"us"}}), nil},
		"secrets":    {narrowing(extensions.Narrowing{SecretsAs: extensions.SecretDeliveries}), nil},
		"limits":     {narrowing(extensions.Narrowing{Limits: []extensions.Limit{extensions.LimitCPU}}), nil},
		"read-only": {narrowing(extensions.Narrowing{ReadOnlyWorkspace: to(false)}),
			func(d extensions.Descriptor) bool { return !d.Capabilities.ReadOnlyWorkspace }},
		"egress": {narrowing(extensions.Narrowing{Egress: to(extensions.EgressDenyOnly)}),
			func(d extensions.Descriptor) bool { return !d.Capabilities.CustomNetworkPolicy }},
		"no powers": {declaration{Powers: []extensions.Power{}},
			func(d extensions.Descriptor) bool {
				return len(d.Powers) == 0 && d.Capabilities.ExtendTTL == extensions.ExtendNone
			}},
		"sweep while paused": {narrowing(extensions.Narrowing{PausedExpiry: to(extensions.ExpirySweep)}),
			func(d extensions.Descriptor) bool {
				return d.Capabilities.PausedExpiry == extensions.ExpirySweep && d.Capabilities.Expiry == extensions.ExpiryHost
			}},
		"sweep at all": {narrowing(extensions.Narrowing{Expiry: to(extensions.ExpirySweep)}),
			func(d extensions.Descriptor) bool { return d.Capabilities.PausedExpiry == extensions.ExpirySweep }},
		"native while paused": {narrowing(extensions.Narrowing{PausedExpiry: to(extensions.ExpiryNative)}), nil},
		"no pause": {declaration{Powers: []extensions.Power{extensions.PowerExec}},
			func(d extensions.Descriptor) bool {
				return !d.Capabilities.PauseResume && d.Capabilities.PausedExpiry == ""
			}},
		"fixed end": {narrowing(extensions.Narrowing{ExtendTTL: to(extensions.ExtendNone)}),
			func(d extensions.Descriptor) bool {
				return !d.Has(extensions.PowerExtend) && d.Has(extensions.PowerExec)
			}},
		"a power":   {declaration{Powers: []extensions.Power{extensions.PowerCapacity}}, nil},
		"a place":   {declaration{Places: []extensions.Place{extensions.PlaceMachine}}, nil},
		"no place":  {declaration{Places: []extensions.Place{}}, nil},
		"no levels": {narrowing(extensions.Narrowing{IsolationLevels: []extensions.Isolation{}}), nil},
		"blind": {declaration{Find: &extensions.Find{Strength: extensions.FindNone}},
			func(d extensions.Descriptor) bool { return !d.Find.Recoverable() }},
		"slower": {declaration{Find: &extensions.Find{Strength: extensions.FindEventual, Settle: time.Hour}},
			func(d extensions.Descriptor) bool { return d.Find.Settle == time.Hour }},
		"faster": {declaration{Find: &extensions.Find{Strength: extensions.FindEventual, Settle: time.Second}}, nil},
		"strong": {declaration{Find: &extensions.Find{Strength: extensions.FindStrong}}, nil},
	} {
		got, err := d.Narrow(x.by)
		switch {
		case x.holds == nil && !extensions.IsKind(err, extensions.KindInternal):
			t.Errorf("%s: %v", name, err)
		case x.holds != nil && (err != nil || !x.holds(got)):
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
	more := extensions.Facts{Narrowing: extensions.Narrowing{MaxVCPU: to(int64(64)), MaxTTL: to(time.Minute),
		Egress:    to(extensions.EgressDomain),
		SecretsAs: extensions.SecretDeliveries, GPU: to(true)}, Powers: []extensions.Power{extensions.PowerExec, extensions.PowerCapacity}}
	left, powers := more.Narrow(d.Capabilities, d.Powers)
	if *left.MaxVCPU != 4 || left.MaxTTL != time.Minute || len(left.SecretsAs) != 1 || left.ExtendTTL != extensions.ExtendNone ||
		!slices.Equal(powers, []extensions.Power{extensions.PowerExec}) {
		t.Errorf("facts leave %+v and %v", left, powers)
	}
	if len(d.Powers) < 5 || *d.Capabilities.MaxVCPU != 4 {
		t.Error("narrowing reached the descriptor")
	}
}
