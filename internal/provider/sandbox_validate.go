package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var emptyPath = path.Empty()

// ValidateConfig implements resource.ResourceWithValidateConfig. It checks the arguments as far as that needs
// no catalog.
func (r *sandboxResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var given types.Dynamic
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("inputs"), &given)...)
	if resp.Diagnostics.HasError() || !fullyKnown(ctx, given) {
		return
	}
	inputs, err := inputsOf(given)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("inputs"), "Invalid inputs", sentence(err.Error()))
		return
	}
	inputText("inputs", inputs, func(at, s string) {
		if wrong := badRune(s, true); wrong != "" {
			resp.Diagnostics.AddAttributeError(path.Root("inputs"), "Invalid value for "+at,
				sentence(wrong)+"\n\nInputs become text of the profile, which allows no control characters except line breaks and tabs.")
		}
	})
}
