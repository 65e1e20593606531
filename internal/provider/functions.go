package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// Functions implements provider.ProviderWithFunctions.
func (p *Provider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		func() function.Function { return durationFunction{} },
		func() function.Function { return profileFunction{} },
	}
}

// durationFunction makes durations comparable.
type durationFunction struct{}

// Metadata implements function.Function.
func (durationFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "duration"
}

// Definition implements function.Function.
func (durationFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Seconds of a duration",
		MarkdownDescription: "Returns the number of seconds in a duration such as `90s`, `45m`, `2h30m` or `1d`, the format of `ttl` and " +
			"`timeout`. Any other text is an error. Pass the result to `timeadd` as `\"${seconds}s\"`.",
		Parameters: []function.Parameter{function.StringParameter{Name: "duration", MarkdownDescription: "The duration. It may be 0."}},
		Return:     function.Float64Return{},
	}
}

// Run implements function.Function.
func (durationFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text string
	if resp.Error = req.Arguments.Get(ctx, &text); resp.Error != nil {
		return
	}
	d, err := engine.ParseDuration(text)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, d.Seconds())
}

// profileFunction takes the name of a profile apart.
type profileFunction struct{}

var profileParts = map[string]attr.Type{"id": types.StringType, "version": types.StringType}

// Metadata implements function.Function.
func (profileFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "profile"
}

// Definition implements function.Function.
func (profileFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Parts of a profile's name",
		MarkdownDescription: "Returns the `id` and the `version` of a profile's name, such as `profile.quickstart` or " +
			"`profile.quickstart@1.0.0`; the version is null if it has none. Any other text is an error. It does not read the catalog; the " +
			"data source `sandboxer_profile` does.",
		Parameters: []function.Parameter{function.StringParameter{Name: "profile", MarkdownDescription: "The name."}},
		Return:     function.ObjectReturn{AttributeTypes: profileParts},
	}
}

// Run implements function.Function.
func (profileFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var ref string
	if resp.Error = req.Arguments.Get(ctx, &ref); resp.Error != nil {
		return
	}
	id, version, err := engine.ParseProfile(ref)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	v, diags := types.ObjectValue(profileParts, map[string]attr.Value{"id": types.StringValue(id), "version": optional(version)})
	if resp.Error = function.FuncErrorFromDiags(ctx, diags); resp.Error == nil {
		resp.Error = resp.Result.Set(ctx, v)
	}
}
