package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Metadata implements resource.Resource.
func (r *sandboxResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_sandbox"
}

// IdentitySchema implements resource.ResourceWithIdentity.
func (r *sandboxResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"account": identityschema.StringAttribute{RequiredForImport: true, Description: "The account, as org/workspace."},
		"name":    identityschema.StringAttribute{RequiredForImport: true, Description: "The sandbox's name, unique per account while it lives."},
	}}
}

// Schema implements resource.Resource.
func (r *sandboxResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attrs := sandboxArguments()
	for name, a := range sandboxPolicies() {
		attrs[name] = a
	}
	for name, a := range sandboxComputed() {
		attrs[name] = a
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Creates an isolated sandbox from a profile. The plan shows its price. It expires on its own, even if nothing is watching.",
		Attributes:          attrs,
	}
}

// sandboxArguments say what the sandbox is; most of them replace it.
func sandboxArguments() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"profile": schema.StringAttribute{
			Required: true, Validators: []validator.String{profileRef()},
			MarkdownDescription: "ID of a profile in the catalog, such as `profile.quickstart`, or one of its versions, such as `profile.quickstart@1.0.0`. " +
				"The [profile reference](../guides/profile-reference.md) lists what a profile can set. " +
				"Without a version, the newest is used, and a newer version in the catalog replaces the sandbox.",
		},
		"name": schema.StringAttribute{
			Optional: true, Computed: true, Validators: []validator.String{label("a name"), conflictsWith("name_prefix")},
			MarkdownDescription: "Name of the sandbox, unique in the account while it lives. Defaults to `name_prefix` with a random suffix, or to the ID.",
		},
		"name_prefix": schema.StringAttribute{
			Optional: true, Validators: []validator.String{labelPrefix()},
			MarkdownDescription: "Prefix of a name that ends in a random suffix. Conflicts with `name`.",
		},
		"hosts": schema.ListAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.List{eachString(hostEntry())},
			MarkdownDescription: "Hosts it may run on: the `ref` of a `sandboxer_host`, or the name of a host that the ledger knows. Overrides the placement of the profile.",
		},
		"inputs": schema.DynamicAttribute{
			Optional: true,
			MarkdownDescription: "The profile's declared inputs, such as `{ repo = \"${path.module}/app\" }`. Values may be strings, whole numbers, booleans, lists and maps. " +
				"The profile says [where each is used](../guides/profile-reference.md#inputs). " +
				"A relative path starts at the folder that Terraform runs in.",
		},
		"env": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.Map{eachKey(envName()), eachValue(text())},
			MarkdownDescription: "Environment variables inside the sandbox. State and ledger store them: use `secrets_wo` for secrets.",
		},
		"secrets_wo": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Sensitive: true, WriteOnly: true,
			Validators:          []validator.Map{eachKey(envName()), eachValue(secretText())},
			MarkdownDescription: "Secrets by name. Write-only: no state, plan, log or ledger holds them. Inside the sandbox they are environment variables, which the place may record (Docker does). With `secrets_as: file` in the profile they are files `/run/secrets/NAME` in memory instead. Change `secrets_wo_version` to replace the sandbox with new values.",
		},
		"secrets_wo_version": schema.NumberAttribute{
			Optional: true, Validators: []validator.Number{anyWhole()},
			MarkdownDescription: "Any whole number. A change replaces the sandbox, which then gets the current `secrets_wo`.",
		},
		"scope": schema.StringAttribute{
			Optional: true, Computed: true, Validators: []validator.String{oneOf("session", "agent", "shared")},
			MarkdownDescription: "Who shares the sandbox. Only `session` (nobody) is available yet; the plan refuses `agent` and `shared`. Defaults to the profile's `scope_default`.",
		},
		"triggers": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.Map{eachValue(text())},
			MarkdownDescription: "Any values. A change replaces the sandbox. Use it for what Terraform cannot see, such as the digest of a source folder.",
		},
		"from_snapshot": schema.StringAttribute{
			Optional: true, Validators: []validator.String{snapshotID(), conflictsWith("from_sandbox")},
			MarkdownDescription: "ID of the `sandboxer_snapshot` to start from.",
		},
		"from_sandbox": schema.StringAttribute{
			Optional: true, Validators: []validator.String{sandboxID()},
			MarkdownDescription: "ID of a live sandbox to fork. *Not yet available*: the plan refuses it. Take a `sandboxer_snapshot` and use `from_snapshot` instead. Conflicts with `from_snapshot`.",
		},
	}
}

// sandboxPolicies say how the sandbox is treated; none of them replaces it.
func sandboxPolicies() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"ttl": schema.StringAttribute{
			Optional: true, Validators: []validator.String{duration()},
			MarkdownDescription: "How long the sandbox lives from its creation, such as `90s`, `45m`, `2h` or `1d`. Defaults to the profile's. A change moves `expires_at` in place, up to the profile's maximum.",
		},
		"desired_mode": schema.StringAttribute{
			Optional: true, Validators: []validator.String{oneOf("running", "paused")},
			MarkdownDescription: "`running`, or unset to leave the mode alone. `paused` is *not yet available*: the plan refuses it.",
		},
		"on_conflict": enumWithDefault("error", "What to do if a live sandbox has this name: `error`, or `adopt` to take over one with the same specification. Its former owner can no longer change it.", "error", "adopt"),
		"on_expiry":   enumWithDefault("replace", "What the next plan does with an expired sandbox: `replace` it, or `keep` it in the state.", "replace", "keep"),
		"on_unreachable_destroy": enumWithDefault("fail", "What a destroy does if the place cannot be reached: `fail`, or `forget` the sandbox. "+
			"The ledger keeps a forgotten sandbox, its deadline still holds, and `sandboxer sweep` ends it once the place answers. "+
			"A destroy uses the value of the last apply. Apply the change first (with `-refresh=false` if the place is already away), then run `terraform destroy -refresh=false`.", "fail", "forget"),
		"billing": schema.StringAttribute{
			Optional: true, Validators: []validator.String{oneOf("platform", "byok")},
			MarkdownDescription: "Who pays the vendor: `platform` charges the organization's wallet, `byok` your own account. " +
				"Defaults to the binding's `billing`, then to `platform` if the organization was ever granted credit in the currency. Budgets count both.",
		},
		"max_cost": schema.StringAttribute{Optional: true, Validators: []validator.String{money()}, MarkdownDescription: "Highest price until the end of the TTL, such as `1.00 USD`. A sandbox that could cost more, or whose price is unknown, is not created or extended."},
		"deletion_protection": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Refuses to destroy or replace the sandbox while it is ready. Expired and failed sandboxes can always be destroyed. A destroy uses the value of the last apply: apply `false` first, then destroy.",
		},
		"consumer": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "Who the sandbox runs for. Recorded in events and used to group usage. A change takes effect when the sandbox is re-created.",
			Attributes: map[string]schema.Attribute{
				"actor":      schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf("adm", "agt", "atm")}, MarkdownDescription: "`adm` (a person), `agt` (an agent) or `atm` (automation)."},
				"harness":    consumerField("Name of the program that uses the sandbox."),
				"run_id":     consumerField("Its run."),
				"session_id": consumerField("Its session."),
				"job_id":     consumerField("Its job."),
			},
		},
		"timeouts": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "Time limits of operations.",
			Attributes: map[string]schema.Attribute{
				"create": timeoutField("20m"), "read": timeoutField("5m"), "update": timeoutField("10m"), "delete": timeoutField("15m"),
			},
		},
	}
}

func sandboxComputed() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":              schema.StringAttribute{Computed: true, MarkdownDescription: "ID of the sandbox for its whole life, also written on the backend's object."},
		"account":         schema.StringAttribute{Computed: true, MarkdownDescription: "Account that the sandbox was made for, as `org/workspace`."},
		"profile_version": schema.StringAttribute{Computed: true, MarkdownDescription: "Version of its profile."},
		"state":           schema.StringAttribute{Computed: true, MarkdownDescription: "State of the sandbox: `requested`, `provisioning`, `ready`, `expired`, `failed` or `destroying`."},
		"extension":       schema.StringAttribute{Computed: true, MarkdownDescription: "Extension that runs it, such as `ext.local`."},
		"host":            schema.StringAttribute{Computed: true, MarkdownDescription: "Ref of the host that runs it. Null for a vendor's account."},
		"handle":          schema.StringAttribute{Computed: true, MarkdownDescription: "Durable pointer to the backend's object, without secrets. Any machine can read and destroy the sandbox with it."},
		"created_at":      schema.StringAttribute{Computed: true, MarkdownDescription: "Time of creation, RFC 3339."},
		"expires_at":      schema.StringAttribute{Computed: true, MarkdownDescription: "Time of its end, RFC 3339. A later end that somebody else set is no difference."},
		"expiry":          schema.StringAttribute{Computed: true, MarkdownDescription: "Who ends it: `native` (the place), `host` or `sweep`."},
		"reachability": schema.SingleNestedAttribute{Computed: true, Attributes: resourceComputed(reachabilityFields),
			MarkdownDescription: "How to get into the sandbox now."},
		"estimate": schema.SingleNestedAttribute{Computed: true, Attributes: resourceComputed(estimateFields),
			MarkdownDescription: "Price of the sandbox. Planned on create, on replacement and on a change of `ttl`, which uses the prices it was made with. Otherwise kept, so a new price is no difference. Unknown in the plan if the place comes from the ledger."},
		"route": schema.SingleNestedAttribute{Computed: true, Attributes: resourceComputed(routeFields),
			MarkdownDescription: "Where the sandbox runs, and why."},
	}
}

func enumWithDefault(def, doc string, values ...string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString(def),
		Validators: []validator.String{oneOf(values...)}, MarkdownDescription: doc + " Default: `" + def + "`."}
}

func consumerField(doc string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("text")}, MarkdownDescription: doc}
}

func timeoutField(def string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Validators: []validator.String{duration()}, MarkdownDescription: "Default: `" + def + "`."}
}
