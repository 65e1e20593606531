// Package provider is the Terraform surface: it turns plans into requests to the engine and the engine's
// answers into state. It decides nothing that the engine could decide and calls nothing below it.
package provider

import (
	"context"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Address is the provider's address in registries.
const Address = "registry.terraform.io/sand-boxer/sandboxer"

// Provider is one provider process. Each provider block and alias that it configures gets its own engine;
// Close releases them all.
type Provider struct {
	version    string
	extensions []extensions.Extension
	engines    engines
	now        atomic.Pointer[configured] // from the last Configure
	run        func() run                 // what Terraform was started for
}

var (
	_ provider.ProviderWithFunctions          = (*Provider)(nil)
	_ provider.ProviderWithEphemeralResources = (*Provider)(nil)
	_ provider.ProviderWithActions            = (*Provider)(nil)
	_ provider.ProviderWithListResources      = (*Provider)(nil)
)

// New returns a provider over the given extensions. It opens nothing yet.
func New(version string, exts []extensions.Extension) *Provider {
	return &Provider{version: version, extensions: exts, run: thisRun}
}

// Metadata implements provider.Provider.
func (p *Provider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "sandboxer"
	resp.Version = p.version
}

type providerModel struct {
	Catalog     types.List   `tfsdk:"catalog"`
	Ledger      types.String `tfsdk:"ledger"`
	Account     types.String `tfsdk:"account"`
	StateDir    types.String `tfsdk:"state_dir"`
	Credentials types.Map    `tfsdk:"credentials"`

	AllowedCommands types.List `tfsdk:"allowed_commands"`
}

// Schema implements provider.Provider.
func (p *Provider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "sandboxer creates sandboxes, isolated places to run code, from profiles. It shows their price before they " +
			"exist, ends them on time, and records what happened in a ledger. It needs no configuration: a catalog is built in, and the " +
			"ledger is a file in your state folder.",
		Attributes: map[string]schema.Attribute{
			"catalog": schema.ListAttribute{
				ElementType: types.StringType, Optional: true,
				Validators: []validator.List{eachString(plainText("a folder"))},
				MarkdownDescription: "Catalog folders with `profiles/*.yaml`, `extensions/*.yaml` and `prices/*.yaml`. " +
					"Later folders win, with a warning. The built-in catalog comes first.",
			},
			"ledger": schema.StringAttribute{
				Optional: true, Validators: []validator.String{ledgerURL()},
				MarkdownDescription: "Ledger that records sandboxes, prices and events: `sqlite:///absolute/path/ledger.db`, or " +
					"`postgres://user@host/database` " +
					"to share it between machines (see the guide *Share a ledger*; the password comes from `PGPASSWORD` or `~/.pgpass`). " +
					"Defaults to `ledger.db` in `state_dir`. Use one ledger for everything that shares hosts and names.",
			},
			"account": schema.StringAttribute{
				Optional: true, Validators: []validator.String{accountName()},
				MarkdownDescription: "Account to bill and list, as `org/workspace`. Defaults to `default/default`. Names of live sandboxes are " +
					"unique in an account. A live sandbox stays in its account. A change applies to new sandboxes only, and the plan says so.",
			},
			"state_dir": schema.StringAttribute{
				Optional: true, Validators: []validator.String{plainText("a folder")},
				MarkdownDescription: "Folder for the default ledger and for what extensions store on this machine. " +
					"Defaults to `$SANDBOXER_STATE_DIR`, then to the user's state folder. It is private (mode 0700).",
			},
			"allowed_commands": schema.ListAttribute{
				ElementType: types.StringType, Optional: true,
				Validators: []validator.List{eachString(plainText("an absolute path"))},
				MarkdownDescription: "Absolute paths of programs on this machine that bindings of `command` (extensions in any language) may " +
					"run. A catalog cannot allow a program: the plan refuses a binding whose program is not listed here. See the guide *Write an " +
					"extension*.",
			},
			"credentials": schema.MapAttribute{
				ElementType: types.MapType{ElemType: types.StringType}, Optional: true, Sensitive: true,
				MarkdownDescription: "Credentials per extension, such as `{ \"ext.e2b\" = { api_key = var.e2b_api_key } }`. The extension " +
					"declares the keys. Routing considers a vendor if it has an entry here, if a binding of your catalog has `enabled: true`, or if " +
					"the profile pins it. Keys that an entry lacks come from the vendor's usual environment variables. These variables alone never " +
					"make routing choose a vendor.",
			},
		},
	}
}

// Resources implements provider.Provider.
func (p *Provider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return &hostResource{} },
		func() resource.Resource { return &sandboxResource{} },
		func() resource.Resource { return &snapshotResource{} },
		func() resource.Resource { return &execResource{} },
	}
}

// DataSources implements provider.Provider.
func (p *Provider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		func() datasource.DataSource { return &quoteDataSource{} },
		func() datasource.DataSource { return &accountDataSource{} },
		func() datasource.DataSource { return &usageDataSource{} },
		func() datasource.DataSource { return &profileDataSource{} },
		func() datasource.DataSource { return &extensionsDataSource{} },
		func() datasource.DataSource { return &sandboxesDataSource{} },
	}
}
