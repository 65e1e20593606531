package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var hostArguments = []string{"name", "local", "ssh", "region", "labels", "priority", "capacity", "cost", "allow_firewall", "proxy_image"}

// Metadata implements resource.Resource.
func (r *hostResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_host"
}

// Schema implements resource.Resource.
func (r *hostResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Registers your own machine for sandboxes: this one (`local = true`), or any with sshd and Docker (`ssh`). It " +
			"installs nothing there; see the guide \"Bring a host\".\n\nCreate and refresh probe the host (`facts`); a change shows as drift. " +
			"If the host does not answer, Terraform warns and the known facts stay. Sandboxes refer to a host by `ref`, which the plan knows " +
			"if it knows the arguments. So one apply can add, change and remove a host together with its sandboxes. A refresh never drops a " +
			"host that the ledger does not know; the next apply registers it again.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true, Validators: []validator.String{label("a host's name")},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "Name of the host, unique in the account. Profiles and `hosts` refer to it. A change replaces the host.",
			},
			"local": schema.BoolAttribute{Optional: true, MarkdownDescription: "Registers this machine. Set exactly one of `local` and `ssh`."},
			"ssh": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "How to reach another machine. Its key must be known: set exactly one of `host_key`, " +
					"`known_hosts` and `host_ca`, or have an entry in `~/.ssh/known_hosts`.",
				Attributes: sshAttributes(true),
			},
			"region": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a region")},
				MarkdownDescription: "Region of the host, such as `eu`. Profiles may require one."},
			"labels": schema.MapAttribute{ElementType: types.StringType, Optional: true,
				Validators: []validator.Map{eachKey(plainText("a label's name")),
					eachValue(plainText("a label's value"))}, MarkdownDescription: "Labels, such as `{ pool = \"e2e\" }`."},
			"priority": schema.NumberAttribute{Optional: true, Validators: []validator.Number{anyWhole()},
				MarkdownDescription: "Of hosts that are otherwise equal, the one with the highest priority is chosen. Defaults to 0."},
			"capacity": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "Limits of the host.",
				Attributes: map[string]schema.Attribute{
					"max_sandboxes": schema.NumberAttribute{Optional: true, Validators: []validator.Number{positive()},
						MarkdownDescription: "Maximum number of sandboxes at once. No limit by default."},
				},
			},
			"cost": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "Price and size of the whole host. A sandbox bears its share, in OpenCost's ratio of CPU, " +
					"memory, disk and GPU.",
				Attributes: map[string]schema.Attribute{
					"per_hour": schema.StringAttribute{Optional: true, Validators: []validator.String{money()},
						MarkdownDescription: "Cost per hour, such as `0.40 USD`."},
					"cpu": schema.NumberAttribute{Optional: true, Validators: []validator.Number{positive()},
						MarkdownDescription: "CPUs of the host."},
					"memory_mb": schema.NumberAttribute{Optional: true, Validators: []validator.Number{positive()},
						MarkdownDescription: "Memory of the host in MiB."},
					"gpu": schema.NumberAttribute{Optional: true, Validators: []validator.Number{positive()},
						MarkdownDescription: "GPUs of the host. Not priced separately by default."},
					"disk_mb": schema.NumberAttribute{Optional: true, Validators: []validator.Number{positive()},
						MarkdownDescription: "Disk of the host in MiB. Not priced separately by default."},
					"idle": schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf(extensions.IdleSharings...)},
						MarkdownDescription: "Who bears the idle cost: `none` (reports show it separately), `shared` (all sandboxes there, by their share) " +
							"or `dedicated` (a sandbox bears the whole host). Defaults to `none`."},
				},
			},
			"allow_firewall": schema.BoolAttribute{Optional: true,
				MarkdownDescription: "Allows firewall rules on the host, each tagged with its sandbox. Needed to allow single destinations, and for " +
					"ports under a denied network. Defaults to `false`."},
			"proxy_image": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("an image")},
				MarkdownDescription: "Image of the proxy that allows egress by domain, pinned as `name@sha256:…`. Without it, this host refuses " +
					"domains in `network.egress`."},
			"force_destroy": schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Removes the host from the ledger even if sandboxes live on it. It does not destroy them. A destroy uses " +
					"the value of the last apply: apply `true` first, which also works while the host is unreachable, then destroy. Default: " +
					"`false`."},
			"ref": schema.StringAttribute{Computed: true,
				MarkdownDescription: "The host in one line, `host://NAME?v=1&d=…`, without secrets, for `sandboxer_sandbox.hosts`. At most 16 KiB."},
			"facts": schema.SingleNestedAttribute{Computed: true, Attributes: resourceComputed(factFields),
				MarkdownDescription: "What a probe found on the host."},
		},
	}
}

var factFields = []computedField{
	{name: "os", typ: types.StringType, doc: "Operating system: `linux`, `darwin`."},
	{name: "arch", typ: types.StringType, doc: "Architecture, as Go names it: `amd64`, `arm64`."},
	{name: "cpus", typ: types.Int64Type, doc: "Number of CPUs."},
	{name: "memory_mb", typ: types.Int64Type, doc: "Memory in MiB."},
	{name: "docker", typ: types.StringType, doc: "Version of Docker; null if there is none."},
	{name: "compose", typ: types.StringType, doc: "Version of Docker Compose; null if there is none."},
	{name: "kvm", typ: types.BoolType, doc: "Whether KVM is available."},
	{name: "gpu", typ: types.BoolType, doc: "Whether it has a GPU."},
	{name: "egress", typ: types.StringType, doc: "What network policy can be enforced there: `none`, `deny-only`, `cidr` or `domain`; " +
		"null if unknown."},
	{name: "expiry", typ: types.StringType, doc: "Who ends expired sandboxes there while sandboxer is not running: `host`, or `sweep` " +
		"(nobody); null if unknown."},
}

// sshAttributes describe one hop; only the last hop has jump hosts.
func sshAttributes(withJump bool) map[string]schema.Attribute {
	attrs := map[string]schema.Attribute{
		"address": schema.StringAttribute{Optional: true, Validators: []validator.String{hostAddress()},
			MarkdownDescription: "Name or IP address. Set exactly one of `address` and `alias`."},
		"alias": schema.StringAttribute{Optional: true, Validators: []validator.String{hostAddress()},
			MarkdownDescription: "A `Host` entry of `~/.ssh/config`."},
		"port": schema.NumberAttribute{Optional: true, Validators: []validator.Number{wholeNumber{1, 65535}},
			MarkdownDescription: "Port. Defaults to 22, or to the alias's."},
		"user": schema.StringAttribute{Optional: true, Validators: []validator.String{userName()},
			MarkdownDescription: "User to log in as."},
		"host_key": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a public key line")},
			MarkdownDescription: "Public key of the host, such as `ssh-ed25519 AAAA…`."},
		"known_hosts": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a path")},
			MarkdownDescription: "Path of a known_hosts file with the host's key."},
		"host_ca": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a public key line")},
			MarkdownDescription: "Public key of a CA that signs host keys."},
		"identity": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "How to log in: a reference to a key, never the key itself.",
			Attributes: map[string]schema.Attribute{
				"name": schema.StringAttribute{Optional: true, Validators: []validator.String{label("an identity's name")},
					MarkdownDescription: "Identity of the catalog (`identities/NAME.yaml`). Conflicts with the other arguments."},
				"private_key_file": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a path")},
					MarkdownDescription: "Path of a private key."},
				"certificate_file": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a path")},
					MarkdownDescription: "Path of its certificate."},
				"agent": schema.BoolAttribute{Optional: true, MarkdownDescription: "Use the SSH agent."},
				"command": schema.ListAttribute{Optional: true, ElementType: types.StringType,
					Validators:          []validator.List{eachString(plainText("an argument"))},
					MarkdownDescription: "Command that prints a short-lived credential."},
			},
		},
	}
	if withJump {
		attrs["tunnel"] = schema.StringAttribute{Optional: true, Validators: []validator.String{label("a tunnel's name")},
			MarkdownDescription: "Jump host of the catalog (`tunnels/NAME.yaml`). Conflicts with `jump`. Its address and identity become part " +
				"of `ref`, so a destroy elsewhere needs no catalog."}
		attrs["jump"] = schema.ListNestedAttribute{Optional: true, MarkdownDescription: "Jump hosts, first hop first.",
			NestedObject: schema.NestedAttributeObject{Attributes: sshAttributes(false)}}
	}
	return attrs
}
