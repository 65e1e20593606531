package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestAHandleInAStateIsOneOpaqueLine(t *testing.T) {
	t.Parallel()
	const handle = `{"extension":"local","id":"sbx-aaaaaaaaaaaaaaaaaaaa","data":{"a":"\u00e4"}}`
	v := handleValue(handle)
	if text := v.ValueString(); strings.ContainsAny(text, "{}\"\n ") || handleOf(v) != handle {
		t.Errorf("%s is read as %q", text, handleOf(v))
	}
	if v := handleValue(""); !v.IsNull() || handleOf(v) != "" {
		t.Errorf("none is %s", v)
	}
	for _, foreign := range []string{handle, "handle:v2:e30", "handle:v1:e", "handle:v1:{}"} {
		if got := handleOf(types.StringValue(foreign)); got != "" {
			t.Errorf("%s is read as %q", foreign, got)
		}
	}
}
