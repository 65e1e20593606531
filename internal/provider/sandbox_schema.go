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
		MarkdownDescription: "One sandbox: an isolated place to run code, made from a profile, with a price before it exists and an end that does not depend on anybody watching.",
		Attributes:          attrs,
	}
}

// sandboxArguments say what the sandbox is; most of them replace it.
func sandboxArguments() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"profile": schema.StringAttribute{
			Required: true, Validators: []validator.String{profileRef()},
			MarkdownDescription: "What to make: the id of a profile in the catalog, such as `profile.quickstart`, or one version of it: `profile.quickstart@1.0.0`. " +
				"What a profile can say is in the [profile reference](../guides/profile-reference.md). " +
				"Without a version the newest is used, and a newer one in the catalog replaces the sandbox.",
		},
		"name": schema.StringAttribute{
			Optional: true, Computed: true, Validators: []validator.String{label("a name"), conflictsWith("name_prefix")},
			MarkdownDescription: "Name of the sandbox, unique per account while it lives. Default: `name_prefix` and a random suffix, or else the id.",
		},
		"name_prefix": schema.StringAttribute{
			Optional: true, Validators: []validator.String{labelPrefix()},
			MarkdownDescription: "Start of a name that gets a random suffix. Conflicts with `name`.",
		},
		"hosts": schema.ListAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.List{eachString(hostEntry())},
			MarkdownDescription: "Where it may run: `ref`s of `sandboxer_host`, or bare names, which are looked up in the ledger. Overrides the profile's placement.",
		},
		"inputs": schema.DynamicAttribute{
			Optional: true,
			MarkdownDescription: "The profile's declared inputs, such as `{ repo = \"${path.module}/app\" }`. Values may be strings, whole numbers, booleans, lists and maps. " +
				"They go where the profile [names them](../guides/profile-reference.md#inputs), each as one text. " +
				"A relative path is relative to the folder Terraform runs in.",
		},
		"env": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.Map{eachKey(envName()), eachValue(text())},
			MarkdownDescription: "Environment variables inside. They are kept in state and ledger: use `secrets_wo` for secrets.",
		},
		"secrets_wo": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Sensitive: true, WriteOnly: true,
			Validators:          []validator.Map{eachKey(envName()), eachValue(secretText())},
			MarkdownDescription: "Secrets by name. Write-only: never in state, plan, log or ledger. Inside they are environment variables, which the place may keep in its own records (Docker does), or, with `secrets_as: file` in the profile, files `/run/secrets/NAME` in memory, which are in none. Change `secrets_wo_version` to replace the sandbox with new values.",
		},
		"secrets_wo_version": schema.NumberAttribute{
			Optional: true, Validators: []validator.Number{anyWhole()},
			MarkdownDescription: "Any whole number; a change replaces the sandbox, which then gets the current `secrets_wo`.",
		},
		"scope": schema.StringAttribute{
			Optional: true, Computed: true, Validators: []validator.String{oneOf("session", "agent", "shared")},
			MarkdownDescription: "Who shares it. Only `session`, nobody else, can be had yet: `agent` and `shared` are refused in the plan. Default: the profile's `scope_default`.",
		},
		"triggers": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.Map{eachValue(text())},
			MarkdownDescription: "Any values; a change replaces the sandbox. Use it for what Terraform cannot see, such as the digest of a source folder.",
		},
		"from_snapshot": schema.StringAttribute{
			Optional: true, Validators: []validator.String{snapshotID(), conflictsWith("from_sandbox")},
			MarkdownDescription: "Start from this snapshot: the `id` of a `sandboxer_snapshot`.",
		},
		"from_sandbox": schema.StringAttribute{
			Optional: true, Validators: []validator.String{sandboxID()},
			MarkdownDescription: "Start as a copy (fork) of this live sandbox. *Not yet*: it is refused in the plan; a `sandboxer_snapshot` and `from_snapshot` do it meanwhile. Conflicts with `from_snapshot`.",
		},
	}
}

// sandboxPolicies say how the sandbox is treated; none of them replaces it.
func sandboxPolicies() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"ttl": schema.StringAttribute{
			Optional: true, Validators: []validator.String{duration()},
			MarkdownDescription: "How long it lives, counted from its creation: `90s`, `45m`, `2h`, `1d`. Default: the profile's. A change moves `expires_at` in place; the profile's maximum holds.",
		},
		"desired_mode": schema.StringAttribute{
			Optional: true, Validators: []validator.String{oneOf("running", "paused")},
			MarkdownDescription: "`running`. Unset: left alone. `paused` is *not yet* possible and refused in the plan.",
		},
		"on_conflict": enumWithDefault("error", "What to do when a live sandbox of this name exists: `error`, or `adopt` to take over one of the same name and specification. Adopting fences the former owner off.", "error", "adopt"),
		"on_expiry":   enumWithDefault("replace", "What the next plan does with an expired sandbox: `replace` it, or `keep` it in the state and plan nothing.", "replace", "keep"),
		"on_unreachable_destroy": enumWithDefault("fail", "What a destroy does when the place cannot be reached: `fail`, or `forget` it. "+
			"The ledger keeps a forgotten one, and `sandboxer sweep` ends it once the place answers; its deadline holds meanwhile. "+
			"A destroy goes by the last apply: apply the change first, with `terraform apply -refresh=false` where the place is away already, then `terraform destroy -refresh=false`.", "fail", "forget"),
		"billing": schema.StringAttribute{
			Optional: true, Validators: []validator.String{oneOf("platform", "byok")},
			MarkdownDescription: "Who pays where a vendor sends a bill: `platform`, out of the org's wallet, or `byok`, your own account with the vendor. " +
				"Unset: as the `billing` of the extension's binding says, where it says anything; else the wallet, once the org was ever granted credit in the currency; before that, your own account. Budgets count either way.",
		},
		"max_cost": schema.StringAttribute{Optional: true, Validators: []validator.String{money()}, MarkdownDescription: "Refuse to create it, or to give it a later end, if the worst case until its TTL costs more, such as `1.00 USD`. A cost that is not known is refused too."},
		"deletion_protection": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Refuse to destroy or replace it while it is ready: in the plan, and again at the destroy. Expired and failed ones can always go. A destroy goes by the last apply: apply `false` first, then destroy.",
		},
		"consumer": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "On whose behalf it runs: kept in the ledger's events, and what usage is told apart by. A life counts for the consumer that it began with; a change, or who adopts it, counts when it is made anew.",
			Attributes: map[string]schema.Attribute{
				"actor":      schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf("adm", "agt", "atm")}, MarkdownDescription: "`adm` (a person), `agt` (an agent) or `atm` (automation)."},
				"harness":    consumerField("Name of the program that uses the sandbox."),
				"run_id":     consumerField("Its run."),
				"session_id": consumerField("Its session."),
				"job_id":     consumerField("Its job."),
			},
		},
		"timeouts": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "How long operations may take.",
			Attributes: map[string]schema.Attribute{
				"create": timeoutField("20m"), "read": timeoutField("5m"), "update": timeoutField("10m"), "delete": timeoutField("15m"),
			},
		},
	}
}

func sandboxComputed() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":              schema.StringAttribute{Computed: true, MarkdownDescription: "Id of the sandbox for its whole life, also written on the backend's object."},
		"account":         schema.StringAttribute{Computed: true, MarkdownDescription: "The account it was made for and stays with while it lives, as `org/workspace`."},
		"profile_version": schema.StringAttribute{Computed: true, MarkdownDescription: "Version of the profile it was made from."},
		"state":           schema.StringAttribute{Computed: true, MarkdownDescription: "Where it is in its life: `requested`, `provisioning`, `ready`, `expired`, `failed` or `destroying`."},
		"extension":       schema.StringAttribute{Computed: true, MarkdownDescription: "The extension that runs it, such as `ext.local`."},
		"host":            schema.StringAttribute{Computed: true, MarkdownDescription: "Ref of the host it runs on; null for a vendor's account."},
		"handle":          schema.StringAttribute{Computed: true, MarkdownDescription: "Durable pointer to the backend's object, as JSON without secrets. With it any machine can read and destroy the sandbox."},
		"created_at":      schema.StringAttribute{Computed: true, MarkdownDescription: "When it was created, RFC 3339."},
		"expires_at":      schema.StringAttribute{Computed: true, MarkdownDescription: "When it ends, RFC 3339. A later end set by others is accepted silently."},
		"expiry":          schema.StringAttribute{Computed: true, MarkdownDescription: "Who ends it: `native`, `host` or `sweep`."},
		"reachability": schema.SingleNestedAttribute{Computed: true, Attributes: resourceComputed(reachabilityFields),
			MarkdownDescription: "How to get in now."},
		"estimate": schema.SingleNestedAttribute{Computed: true, Attributes: resourceComputed(estimateFields),
			MarkdownDescription: "What it costs, before it exists. Planned on create and replacement, and on a change of `ttl`, then for its own place by the prices it was made with; otherwise kept, so a new price is no difference. Unknown in the plan where the place comes from the ledger."},
		"route": schema.SingleNestedAttribute{Computed: true, Attributes: resourceComputed(routeFields),
			MarkdownDescription: "Where it went and why."},
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
