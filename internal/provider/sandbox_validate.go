package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

var emptyPath = path.Empty()

// ValidateConfig implements resource.ResourceWithValidateConfig: what can be
// said about the arguments without a catalog.
func (r *sandboxResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m sandboxModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || !fullyKnown(ctx, m.Inputs) {
		return
	}
	inputs, err := inputsOf(m.Inputs)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("inputs"), "Invalid inputs", sentence(err.Error()))
		return
	}
	inputText("inputs", inputs, func(at, s string) {
		if wrong := badRune(s, true); wrong != "" {
			resp.Diagnostics.AddAttributeError(path.Root("inputs"), "Invalid value for "+at,
				sentence(wrong)+"\n\nInputs become text of the profile, which has no control characters but line breaks and tabs.")
		}
	})
}
