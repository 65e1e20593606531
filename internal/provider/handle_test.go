package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestAHandleInAStateIsOneOpaqueLine(t *testing.T) {
	t.Parallel()
	const id, handle = "sbx-aaaaaaaaaaaaaaaaaaaa", `{"extension":"local","id":"sbx-aaaaaaaaaaaaaaaaaaaa","data":{"a":"\u00e4"}}`
	v := handleValue(handle, id)
	if text := v.ValueString(); strings.ContainsAny(text, "{}\"\n ") || handleOf(v, types.StringValue(id)) != handle {
		t.Errorf("%s is read as %q", text, handleOf(v, types.StringValue(id)))
	}
	if whole := handleValue(handle, "another"); len(whole.ValueString()) <= len(v.ValueString()) ||
		handleOf(whole, types.StringValue(id)) != handle {
		t.Errorf("the id of another is left out: %s", whole)
	}
	if v := handleValue("", id); !v.IsNull() || handleOf(v, types.StringValue(id)) != "" {
		t.Errorf("none is %s", v)
	}
	for _, foreign := range []string{handle, "handle:v2:e30", "handle:v1:e", "handle:v1:{}"} {
		if got := handleOf(types.StringValue(foreign), types.StringValue(id)); got != "" {
			t.Errorf("%s is read as %q", foreign, got)
		}
	}
}
