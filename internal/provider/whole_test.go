package provider

import (
	"context"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	rschema "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestAWholeNumberIsCheckedInOurOwnWords(t *testing.T) {
	t.Parallel()
	parsed := func(s string) types.Number {
		f, _, err := big.ParseFloat(s, 10, 512, big.ToNearestEven) // as Terraform reads it
		if err != nil {
			t.Fatal(err)
		}
		return types.NumberValue(f)
	}
	for _, c := range []struct {
		rule  validator.Number
		value types.Number
		want  string
	}{
		{anyWhole(), parsed("1.5"), "1.5 is not a whole number"},
		{anyWhole(), parsed("-0.1"), "-0.1 is not a whole number"},
		{anyWhole(), parsed("1e-400"), "not a whole number"},
		{anyWhole(), parsed("9223372036854775808"), "9223372036854775808 does not fit in 64 bits"},
		{anyWhole(), parsed("-9223372036854775809"), "does not fit in 64 bits"},
		{anyWhole(), parsed("1e400"), "1e+400 does not fit in 64 bits"},
		{anyWhole(), parsed("9223372036854775807"), ""},
		{anyWhole(), parsed("-9223372036854775808"), ""},
		{anyWhole(), parsed("1.0"), ""},
		{anyWhole(), types.NumberNull(), ""},
		{anyWhole(), types.NumberUnknown(), ""},
		{positive(), parsed("0"), "0 is out of range"},
		{positive(), parsed("1"), ""},
		{wholeNumber{1, 65535}, parsed("65536"), "from 1 to 65535"},
		{wholeNumber{1, 65535}, parsed("65535"), ""},
		{vcpus{}, parsed("0.5"), ""},
		{vcpus{}, parsed("0.001"), ""},
		{vcpus{}, parsed("0.1"), ""},
		{vcpus{}, parsed("1000000"), ""},
		{vcpus{}, types.NumberUnknown(), ""},
		{vcpus{}, parsed("0"), "0 is no number of vCPUs"},
		{vcpus{}, parsed("-1"), "from 0.001"},
		{vcpus{}, parsed("0.0005"), "at most 3 decimals"},
		{vcpus{}, parsed("1e400"), "1e+400 is no number"},
	} {
		var resp validator.NumberResponse
		c.rule.ValidateNumber(context.Background(), validator.NumberRequest{Path: path.Root("n"), ConfigValue: c.value}, &resp)
		told := ""
		for _, d := range resp.Diagnostics {
			told += d.Summary() + " " + d.Detail()
		}
		if (c.want == "") != (told == "") || !strings.Contains(told, c.want) || strings.Contains(told, "%!") {
			t.Errorf("%s by %+v: %q, want %q", c.value, c.rule, told, c.want)
		}
	}
	if n := int64Of(optionalInt(math.MaxInt64)); n != math.MaxInt64 {
		t.Errorf("%d came back", n)
	}
}

// A number that a user may set is one that our validator sees first: of others
// the framework speaks as of a defect.
func TestEveryNumberOfTheSchemaIsReadByUs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	s := b.server()
	schemas, err := s.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, r := range []rschema.Schema{schemaOf(&sandboxResource{}), schemaOf(&hostResource{}), schemaOf(&snapshotResource{})} {
		seen += checkedNumbers(t, "", r.Attributes)
	}
	if seen != 14 || len(schemas.DataSourceSchemas) == 0 {
		t.Errorf("%d numbers are checked", seen)
	}
	for name, d := range schemas.DataSourceSchemas {
		for _, a := range d.Block.Attributes {
			if a.Type != nil && a.Type.Is(tftypes.Number) && !a.Computed {
				t.Errorf("%s.%s is a number that nobody checks", name, a.Name)
			}
		}
	}
}

func checkedNumbers(t *testing.T, at string, attrs map[string]rschema.Attribute) (seen int) {
	t.Helper()
	for name, a := range attrs {
		switch x := a.(type) {
		case rschema.NumberAttribute:
			ours := false
			for _, v := range x.Validators {
				_, whole := v.(wholeNumber)
				ours = ours || whole || v == vcpus{}
			}
			if !ours {
				t.Errorf("%s%s is a number without our check", at, name)
			}
			seen++
		case rschema.Int64Attribute, rschema.Int32Attribute, rschema.Float64Attribute, rschema.Float32Attribute:
			if a.IsOptional() || a.IsRequired() {
				t.Errorf("%s%s is converted by the framework before we see it", at, name)
			}
		case rschema.SingleNestedAttribute:
			seen += checkedNumbers(t, at+name+".", x.Attributes)
		case rschema.ListNestedAttribute:
			seen += checkedNumbers(t, at+name+"[].", x.NestedObject.Attributes)
		}
	}
	return seen
}
