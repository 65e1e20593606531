package provider

import (
	"context"
	"maps"

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
	for _, more := range []map[string]schema.Attribute{sandboxOverrides(), sandboxPolicies(), sandboxComputed()} {
		maps.Copy(attrs, more)
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Creates an isolated sandbox from a profile. The plan shows its price. It expires on its own, even if nothing is " +
			"watching.",
		Attributes: attrs,
	}
}

// sandboxArguments define the sandbox; changing most of them replaces it.
func sandboxArguments() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"profile": schema.StringAttribute{
			Required: true, Validators: []validator.String{profileRef()},
			MarkdownDescription: "ID of a profile in the catalog, such as `profile.quickstart`, or one of its versions, such as " +
				"`profile.quickstart@1.0.0`. " +
				"The [profile reference](../guides/profile-reference.md) lists what a profile can set. " +
				"Without a version, the newest is used, and a newer version in the catalog replaces the sandbox.",
		},
		"name": schema.StringAttribute{
			Optional: true, Computed: true, Validators: []validator.String{label("a name"), conflictsWith("name_prefix")},
			MarkdownDescription: "Name of the sandbox, unique in the account while it lives. Defaults to `name_prefix` with a random suffix, or " +
				"to the ID.",
		},
		"name_prefix": schema.StringAttribute{
			Optional: true, Validators: []validator.String{labelPrefix()},
			MarkdownDescription: "Prefix of a name that ends in a random suffix. Conflicts with `name`.",
		},
		"hosts": schema.ListAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.List{eachString(hostEntry())},
			MarkdownDescription: "Hosts it may run on: the `ref` of a `sandboxer_host`, or the name of a host that the ledger knows. Overrides " +
				"the placement of the profile.",
		},
		"inputs": schema.DynamicAttribute{
			Optional: true,
			MarkdownDescription: "The profile's declared inputs, such as `{ repo = \"${path.module}/app\" }`. Values may be strings, whole " +
				"numbers, booleans, lists and maps. " +
				"The profile says [where each is used](../guides/profile-reference.md#inputs). " +
				"A relative path starts at the folder that Terraform runs in.",
		},
		"env": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.Map{eachKey(envName()), eachValue(text())},
			MarkdownDescription: "Environment variables inside the sandbox. State and ledger store them: use `secrets_wo` for secrets.",
		},
		"secrets_wo": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Sensitive: true, WriteOnly: true,
			Validators: []validator.Map{eachKey(envName()), eachValue(secretText())},
			MarkdownDescription: "Secrets by name. Write-only: no state, plan, log or ledger holds them. Inside the sandbox they are environment " +
				"variables, which the place may record (Docker does). With `secrets_as: file` in the profile they are files `/run/secrets/NAME` in " +
				"memory instead. Change `secrets_wo_version` to replace the sandbox with new values.",
		},
		"secrets_wo_version": schema.NumberAttribute{
			Optional: true, Validators: []validator.Number{anyWhole()},
			MarkdownDescription: "Any whole number. A change replaces the sandbox, which then gets the current `secrets_wo`.",
		},
		"scope": schema.StringAttribute{
			Optional: true, Computed: true, Validators: []validator.String{oneOf("session", "agent", "shared")},
			MarkdownDescription: "Who [shares](#shared-sandboxes) the sandbox: `session` (nobody), `agent` (resources of one agent, named by " +
				"`consumer.harness`) or `shared` (any of the account). Defaults to the profile's `scope_default`.",
		},
		"share_key": schema.StringAttribute{
			Optional: true, Validators: []validator.String{label("a share key")},
			MarkdownDescription: "Name by which resources of the same account and profile find the sandbox that they share. Required for scope " +
				"`shared`.",
		},
		"triggers": schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Validators: []validator.Map{eachValue(text())},
			MarkdownDescription: "Any values. A change replaces the sandbox, or re-creates it in place (`replace_mode`). Use it for what " +
				"Terraform cannot see, such as the digest of a source folder.",
		},
		"from_snapshot": schema.StringAttribute{
			Optional: true, Computed: true, Validators: []validator.String{snapshotID(), conflictsWith("from_sandbox")},
			MarkdownDescription: "ID of the `sandboxer_snapshot` to start from. Used only at creation: later the snapshot may be gone, and " +
				"removing the argument changes nothing.",
		},
		"from_sandbox": schema.StringAttribute{
			Optional: true, Computed: true, Validators: []validator.String{sandboxID()},
			MarkdownDescription: "ID of a live sandbox to [fork](#forks). The fork starts with its files, at the same place, with the same " +
				"profile, `inputs` and `env`, and with secrets of its own. Used only at creation, like `from_snapshot`, with which it conflicts.",
		},
	}
}

// sandboxOverrides take the place of what the profile says, if it allows that.
func sandboxOverrides() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"extension": schema.StringAttribute{
			Optional: true, Computed: true, Validators: []validator.String{plainText("text")},
			MarkdownDescription: "Extension that runs it, such as `ext.local`. A profile that pins another one refuses it, unless its " +
				"`overrides` list `extension`.",
		},
		"image": schema.StringAttribute{
			Optional: true, Validators: []validator.String{plainText("text")},
			MarkdownDescription: "Image to use instead of the profile's, such as `python:3.12`. The profile's `overrides` must list `image`.",
		},
		"resources": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "Limits to use instead of the profile's. The profile's `overrides` must list `resources`. " +
				"Limits that you leave out stay the profile's.",
			Attributes: map[string]schema.Attribute{
				"cpu": schema.NumberAttribute{Optional: true, Validators: []validator.Number{vcpus{}},
					MarkdownDescription: "vCPUs, such as 0.5."},
				"memory_mb": schema.NumberAttribute{Optional: true, Validators: []validator.Number{anyWhole()}, MarkdownDescription: "Memory in MiB."},
				"disk_mb":   schema.NumberAttribute{Optional: true, Validators: []validator.Number{anyWhole()}, MarkdownDescription: "Disk in MiB."},
				"pids": schema.NumberAttribute{Optional: true, Validators: []validator.Number{anyWhole()},
					MarkdownDescription: "Processes and threads."},
				"gpu": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "Accelerators, which replace the profile's.",
					Attributes: map[string]schema.Attribute{
						"model": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a model")},
							MarkdownDescription: "Model, such as `H100`. Default: any."},
						"count": schema.NumberAttribute{Optional: true, Validators: []validator.Number{anyWhole()},
							MarkdownDescription: "How many. Default: 1."},
					}},
			},
		},
	}
}

// sandboxPolicies say how to treat the sandbox; changing them never replaces it.
func sandboxPolicies() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"ttl": schema.StringAttribute{
			Optional: true, Validators: []validator.String{duration()},
			MarkdownDescription: "How long the sandbox lives from its creation, such as `90s`, `45m`, `2h` or `1d`. Defaults to the profile's. A " +
				"change moves `expires_at` in place, up to the profile's maximum.",
		},
		"desired_mode": schema.StringAttribute{
			Optional: true, Validators: []validator.String{oneOf("running", "paused")},
			MarkdownDescription: "`running` or `paused`. If unset, Terraform leaves the mode alone. A change pauses or resumes the sandbox in " +
				"place: its processes stop and later continue. The TTL keeps counting while it is paused, and commands do not resume it. A new " +
				"sandbox is first made ready, then paused.",
		},
		"replace_mode": schema.StringAttribute{
			Optional: true, Validators: []validator.String{oneOf("replace", "recreate")},
			MarkdownDescription: "What a change of `triggers` does: `replace` (the default), or `recreate`, which destroys its content and " +
				"creates it again in place, with the same `id` and `name`. The `ttl` starts again.",
		},
		"on_conflict": enumWithDefault("error", "What to do if a live sandbox has this name: `error`, or `adopt` to take over one with the "+
			"same specification. Its former owner can no longer change it.", "error", "adopt"),
		"on_expiry": enumWithDefault("replace", "What the next plan does with an expired sandbox: `replace` it, or `keep` it in the state.",
			"replace", "keep"),
		"on_unreachable_destroy": enumWithDefault("fail", "What a destroy does if the place cannot be reached: `fail`, or `forget` the "+
			"sandbox. The ledger keeps a forgotten sandbox, its deadline still holds, and `sandboxer sweep` ends it once the place answers. A "+
			"destroy uses the value of the last apply. Apply the change first (with `-refresh=false` if the place is already unreachable), "+
			"then run `terraform destroy -refresh=false`.", "fail", "forget"),
		"billing": schema.StringAttribute{
			Optional: true, Validators: []validator.String{oneOf("platform", "byok")},
			MarkdownDescription: "Who pays the vendor: `platform` charges the organization's wallet, `byok` your own account. " +
				"Defaults to the binding's `billing`, then to `platform` if the organization was ever granted credit in the currency. Budgets count " +
				"both.",
		},
		"max_cost": schema.StringAttribute{Optional: true, Validators: []validator.String{money()},
			MarkdownDescription: "Highest price until the end of the TTL, such as `1.00 USD`. A sandbox that could cost more, or whose price is " +
				"unknown, is not created or extended."},
		"deletion_protection": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Refuses to destroy or replace the sandbox while it is ready. Expired and failed sandboxes can always be " +
				"destroyed. A destroy uses the value of the last apply: apply `false` first, then destroy.",
		},
		"consumer": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "Who the sandbox runs for. Recorded in events and used to group usage. A change takes effect " +
				"when the sandbox is re-created.",
			Attributes: map[string]schema.Attribute{
				"actor": schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf("adm", "agt", "atm")},
					MarkdownDescription: "`adm` (a person), `agt` (an agent) or `atm` (automation)."},
				"harness":    consumerField("Name of the program that uses the sandbox."),
				"run_id":     consumerField("ID of its run."),
				"session_id": consumerField("ID of its session."),
				"job_id":     consumerField("ID of its job."),
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
		"id": schema.StringAttribute{Computed: true,
			MarkdownDescription: "ID of the sandbox for its whole life, also written on the backend's object."},
		"account": schema.StringAttribute{Computed: true,
			MarkdownDescription: "Account of the sandbox, as `org/workspace`."},
		"profile_version": schema.StringAttribute{Computed: true, MarkdownDescription: "Version of its profile."},
		"state": schema.StringAttribute{Computed: true,
			MarkdownDescription: "State of the sandbox: `requested`, `provisioning`, `ready`, `expired`, `failed` or `destroying`."},
		"host": schema.StringAttribute{Computed: true,
			MarkdownDescription: "Ref of the host that runs it. Null for a vendor's account."},
		"handle": schema.StringAttribute{Computed: true,
			MarkdownDescription: "Durable pointer to the backend's object, without secrets. Any machine can read and destroy the sandbox with it."},
		"created_at": schema.StringAttribute{Computed: true, MarkdownDescription: "Time of creation, RFC 3339."},
		"expires_at": schema.StringAttribute{Computed: true,
			MarkdownDescription: "Time of its end, RFC 3339. A later end set elsewhere is not a difference."},
		"expiry": schema.StringAttribute{Computed: true, MarkdownDescription: "Who ends it: `native` (the place), `host` or `sweep`."},
		"reachability": schema.SingleNestedAttribute{Computed: true, Attributes: resourceComputed(reachabilityFields),
			MarkdownDescription: "How to get into the sandbox now."},
		"estimate": schema.SingleNestedAttribute{Computed: true, Attributes: resourceComputed(estimateFields),
			MarkdownDescription: "Price of the sandbox. A plan computes it for a new sandbox, a replacement and a change of `ttl`, which uses " +
				"the prices of its creation. Otherwise it stays, so a new price is not a difference. Unknown in the plan if the place comes from " +
				"the ledger."},
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
