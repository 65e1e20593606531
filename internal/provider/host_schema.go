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
		MarkdownDescription: "A machine of yours that sandboxes can run on: this one (`local = true`), or any that has sshd and Docker (`ssh`). " +
			"Nothing is installed there; see the guide \"Bring a host\".\n\n" +
			"At create and at every refresh the host is asked what it offers (`facts`); a change shows as drift. A host that does not answer is a warning, and what is known of it is kept. " +
			"Sandboxes name their hosts by `ref`, which is known in the plan when the arguments are, so a host can be added, changed and removed in one apply with its sandboxes. " +
			"A read never drops a host because a ledger does not know it; the next apply registers it again.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true, Validators: []validator.String{label("a host's name")},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "Name of the host, unique in the ledger. Profiles and `hosts` may refer to it. A change replaces the host.",
			},
			"local": schema.BoolAttribute{Optional: true, MarkdownDescription: "This machine. Exactly one of `local` and `ssh` is set."},
			"ssh": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "How to reach another machine. Its key must be known beforehand: exactly one of `host_key`, `known_hosts` and `host_ca`, or an entry in `~/.ssh/known_hosts`.",
				Attributes: sshAttributes(true),
			},
			"region": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a region")}, MarkdownDescription: "Where it stands, such as `eu`; profiles may ask for a region."},
			"labels": schema.MapAttribute{ElementType: types.StringType, Optional: true,
				Validators: []validator.Map{eachKey(plainText("a label's name")), eachValue(plainText("a label's value"))}, MarkdownDescription: "Labels, such as `{ pool = \"e2e\" }`."},
			"priority": schema.NumberAttribute{Optional: true, Validators: []validator.Number{anyWhole()}, MarkdownDescription: "Among equals the higher one is preferred. Default: 0."},
			"capacity": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "What you want on it at most.",
				Attributes: map[string]schema.Attribute{
					"max_sandboxes": schema.NumberAttribute{Optional: true, Validators: []validator.Number{positive()}, MarkdownDescription: "Live sandboxes at once. Default: not bounded by us."},
				},
			},
			"cost": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "What the whole host costs you, and its size: the base of the estimate. A sandbox bears its share of it, in OpenCost's ratio of CPU, memory, disk and GPU.",
				Attributes: map[string]schema.Attribute{
					"per_hour":  schema.StringAttribute{Optional: true, Validators: []validator.String{money()}, MarkdownDescription: "Cost per hour, such as `0.40 USD`."},
					"cpu":       schema.NumberAttribute{Optional: true, Validators: []validator.Number{positive()}, MarkdownDescription: "Its CPUs."},
					"memory_mb": schema.NumberAttribute{Optional: true, Validators: []validator.Number{positive()}, MarkdownDescription: "Its memory in MiB."},
					"gpu":       schema.NumberAttribute{Optional: true, Validators: []validator.Number{positive()}, MarkdownDescription: "Its GPUs. Default: none, or not priced apart."},
					"disk_mb":   schema.NumberAttribute{Optional: true, Validators: []validator.Number{positive()}, MarkdownDescription: "Its disk in MiB. Default: not priced apart."},
					"idle": schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf(extensions.IdleSharings...)},
						MarkdownDescription: "Who bears what no sandbox reserves: `none` (it is reported apart), `shared` (those who run there, by their share) or `dedicated` (a sandbox there bears the whole host). Default: `none`."},
				},
			},
			"allow_firewall": schema.BoolAttribute{Optional: true, MarkdownDescription: "Allow firewall rules of ours on it, each tagged with its sandbox: needed for allowlisted egress and for ports under a denied network. Default: `false`."},
			"proxy_image": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("an image")},
				MarkdownDescription: "Image of the proxy that allows egress by domain, pinned as `name@sha256:…`. Without it, domains in `network.egress` are refused on this host."},
			"force_destroy": schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Remove the host from the ledger although sandboxes live on it. They are not destroyed by this. " +
					"A destroy goes by the last apply: apply `true` first, which works while the host is away too, then destroy. Default: `false`."},
			"ref": schema.StringAttribute{Computed: true, MarkdownDescription: "These arguments in one line, `host://NAME?v=1&d=…`, without secrets: what `sandboxer_sandbox.hosts` takes. At most 16 KiB."},
			"facts": schema.SingleNestedAttribute{Computed: true, Attributes: resourceComputed(factFields),
				MarkdownDescription: "What was found there."},
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
	{name: "kvm", typ: types.BoolType, doc: "Whether virtual machines can be accelerated."},
	{name: "gpu", typ: types.BoolType, doc: "Whether it has a GPU."},
	{name: "egress", typ: types.StringType, doc: "What network policy can be enforced there: `none`, `deny-only`, `cidr` or `domain`; null if that is not known."},
	{name: "expiry", typ: types.StringType, doc: "Who ends sandboxes there when this program does not run: `host`, or `sweep` for nobody; null if that is not known."},
}

// sshAttributes describe one hop; only the last one has jump hosts.
func sshAttributes(withJump bool) map[string]schema.Attribute {
	attrs := map[string]schema.Attribute{
		"address":     schema.StringAttribute{Optional: true, Validators: []validator.String{hostAddress()}, MarkdownDescription: "Name or IP address. Exactly one of `address` and `alias` is set."},
		"alias":       schema.StringAttribute{Optional: true, Validators: []validator.String{hostAddress()}, MarkdownDescription: "A `Host` of `~/.ssh/config`."},
		"port":        schema.NumberAttribute{Optional: true, Validators: []validator.Number{wholeNumber{1, 65535}}, MarkdownDescription: "Port. Default: 22, or the alias's."},
		"user":        schema.StringAttribute{Optional: true, Validators: []validator.String{userName()}, MarkdownDescription: "User to log in as."},
		"host_key":    schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a public key line")}, MarkdownDescription: "The host's public key, such as `ssh-ed25519 AAAA…`."},
		"known_hosts": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a path")}, MarkdownDescription: "A known_hosts file that has the key."},
		"host_ca":     schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a public key line")}, MarkdownDescription: "Public key of a CA that signs host keys."},
		"identity": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "The key to log in with: a reference, never the key itself.",
			Attributes: map[string]schema.Attribute{
				"name":             schema.StringAttribute{Optional: true, Validators: []validator.String{label("an identity's name")}, MarkdownDescription: "An identity of the catalog (`identities/NAME.yaml`), instead of the rest."},
				"private_key_file": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a path")}, MarkdownDescription: "Path of a private key."},
				"certificate_file": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a path")}, MarkdownDescription: "Path of its certificate."},
				"agent":            schema.BoolAttribute{Optional: true, MarkdownDescription: "Use the SSH agent."},
				"command":          schema.ListAttribute{Optional: true, ElementType: types.StringType, Validators: []validator.List{eachString(plainText("an argument"))}, MarkdownDescription: "A command that prints a short-lived credential."},
			},
		},
	}
	if withJump {
		attrs["tunnel"] = schema.StringAttribute{Optional: true, Validators: []validator.String{label("a tunnel's name")},
			MarkdownDescription: "A jump host of the catalog (`tunnels/NAME.yaml`) to go through, instead of `jump`. Its address and identity become part of `ref`: a destroy elsewhere needs no catalog."}
		attrs["jump"] = schema.ListNestedAttribute{Optional: true, MarkdownDescription: "Hosts to go through, first hop first.",
			NestedObject: schema.NestedAttributeObject{Attributes: sshAttributes(false)}}
	}
	return attrs
}
