package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type hostModel struct {
	Name          types.String `tfsdk:"name"`
	Local         types.Bool   `tfsdk:"local"`
	SSH           types.Object `tfsdk:"ssh"`
	Region        types.String `tfsdk:"region"`
	Labels        types.Map    `tfsdk:"labels"`
	Priority      types.Number `tfsdk:"priority"`
	Capacity      types.Object `tfsdk:"capacity"`
	Cost          types.Object `tfsdk:"cost"`
	AllowFirewall types.Bool   `tfsdk:"allow_firewall"`
	ProxyImage    types.String `tfsdk:"proxy_image"`
	ForceDestroy  types.Bool   `tfsdk:"force_destroy"`
	Ref           types.String `tfsdk:"ref"`
	Facts         types.Object `tfsdk:"facts"`
}

type identityRefModel struct {
	Name            types.String `tfsdk:"name"`
	PrivateKeyFile  types.String `tfsdk:"private_key_file"`
	CertificateFile types.String `tfsdk:"certificate_file"`
	Agent           types.Bool   `tfsdk:"agent"`
	Command         []string     `tfsdk:"command"`
}

// hopModel is one SSH hop; sshModel is the last hop.
type hopModel struct {
	Address    types.String      `tfsdk:"address"`
	Alias      types.String      `tfsdk:"alias"`
	Port       types.Number      `tfsdk:"port"`
	User       types.String      `tfsdk:"user"`
	HostKey    types.String      `tfsdk:"host_key"`
	KnownHosts types.String      `tfsdk:"known_hosts"`
	HostCA     types.String      `tfsdk:"host_ca"`
	Identity   *identityRefModel `tfsdk:"identity"`
}

type sshModel struct {
	hopModel
	Tunnel types.String `tfsdk:"tunnel"`
	Jump   []hopModel   `tfsdk:"jump"`
}

type capacityModel struct {
	MaxSandboxes types.Number `tfsdk:"max_sandboxes"`
}

type costModel struct {
	PerHour  types.String `tfsdk:"per_hour"`
	CPU      types.Number `tfsdk:"cpu"`
	MemoryMB types.Number `tfsdk:"memory_mb"`
	GPU      types.Number `tfsdk:"gpu"`
	DiskMB   types.Number `tfsdk:"disk_mb"`
	Idle     types.String `tfsdk:"idle"`
}

// known reports whether the ref can be computed.
func (m hostModel) known(ctx context.Context) bool {
	for _, v := range []attr.Value{m.Name, m.Local, m.SSH, m.Region, m.Labels, m.Priority, m.Capacity, m.Cost, m.AllowFirewall, m.ProxyImage} {
		if !fullyKnown(ctx, v) {
			return false
		}
	}
	return true
}

// host builds the host from the arguments. It looks catalog names up in e; if e is nil they are a mistake:
// see named.
func (m hostModel) host(ctx context.Context, e *engine.Engine) (engine.Host, diag.Diagnostics) {
	h := engine.Host{Name: m.Name.ValueString(), Local: m.Local.ValueBool(), Region: m.Region.ValueString(),
		Priority: int64Of(m.Priority), AllowFirewall: m.AllowFirewall.ValueBool(), ProxyImage: m.ProxyImage.ValueString()}
	labels, diags := stringMap(ctx, m.Labels)
	h.Labels = labels
	if !m.Capacity.IsNull() {
		var c capacityModel
		diags.Append(m.Capacity.As(ctx, &c, keepUnknown)...)
		h.Capacity = &extensions.HostCapacity{MaxSandboxes: int64Of(c.MaxSandboxes)}
	}
	if !m.Cost.IsNull() {
		var c costModel
		diags.Append(m.Cost.As(ctx, &c, keepUnknown)...)
		h.Cost = &extensions.HostCost{PerHour: c.PerHour.ValueString(), CPU: int64Of(c.CPU), MemoryMB: int64Of(c.MemoryMB),
			GPU: int64Of(c.GPU), DiskMB: int64Of(c.DiskMB), Idle: c.Idle.ValueString()}
	}
	if !m.SSH.IsNull() {
		var s sshModel
		diags.Append(m.SSH.As(ctx, &s, keepUnknown)...)
		h.SSH = s.reached(ctx, e, &diags)
	}
	return h, diags
}

// reached returns how to dial the host, with catalog names replaced by their entries: the ref is complete
// without a catalog.
func (s sshModel) reached(ctx context.Context, e *engine.Engine, diags *diag.Diagnostics) *extensions.SSH {
	at := path.Root("ssh")
	out := s.hop(ctx, e, at, diags)
	for i, j := range s.Jump {
		out.Jump = append(out.Jump, *j.hop(ctx, e, at.AtName("jump").AtListIndex(i), diags))
	}
	if name := s.Tunnel.ValueString(); name != "" && e != nil {
		t, err := e.Tunnel(name)
		if err != nil {
			addErrorAt(ctx, diags, at.AtName("tunnel"), "Tunnel "+quoteName(name)+" cannot be used", err)
		}
		out.Jump = []extensions.SSH{t}
	}
	return out
}

// named reports whether the arguments use catalog names.
func (m hostModel) named(ctx context.Context) bool {
	var s sshModel
	if m.SSH.IsNull() || m.SSH.As(ctx, &s, keepUnknown).HasError() {
		return false
	}
	named := !s.Tunnel.IsNull()
	for _, h := range append([]hopModel{s.hopModel}, s.Jump...) {
		named = named || h.Identity != nil && !h.Identity.Name.IsNull()
	}
	return named
}

func (m hopModel) hop(ctx context.Context, e *engine.Engine, at path.Path, diags *diag.Diagnostics) *extensions.SSH {
	out := &extensions.SSH{Address: m.Address.ValueString(), Alias: m.Alias.ValueString(), Port: int64Of(m.Port), User: m.User.ValueString(),
		HostKey: m.HostKey.ValueString(), KnownHosts: m.KnownHosts.ValueString(), HostCA: m.HostCA.ValueString()}
	if id := m.Identity; id != nil {
		out.Identity = &extensions.SSHIdentity{PrivateKeyFile: id.PrivateKeyFile.ValueString(), CertificateFile: id.CertificateFile.ValueString(),
			Agent: id.Agent.ValueBool(), Command: id.Command}
		if name := id.Name.ValueString(); name != "" && e != nil {
			found, err := e.Identity(name)
			if err != nil {
				addErrorAt(ctx, diags, at.AtName("identity").AtName("name"), "Identity "+quoteName(name)+" cannot be used", err)
			}
			out.Identity = &found
		}
	}
	return out
}

// checkSSH refuses a hop with no address or two, and a catalog name beside the fields it stands for.
func checkSSH(ctx context.Context, o types.Object, diags *diag.Diagnostics) {
	if !fullyKnown(ctx, o) {
		return
	}
	var s sshModel
	diags.Append(o.As(ctx, &s, keepUnknown)...)
	at := path.Root("ssh")
	hops := append([]hopModel{s.hopModel}, s.Jump...)
	for i, h := range hops {
		if i > 0 {
			at = path.Root("ssh").AtName("jump").AtListIndex(i - 1)
		}
		if h.Address.IsNull() == h.Alias.IsNull() {
			diags.AddAttributeError(at, "The host needs address or alias", "Set exactly one of address and alias.")
		}
		if id := h.Identity; id != nil && !id.Name.IsNull() &&
			(!id.PrivateKeyFile.IsNull() || !id.CertificateFile.IsNull() || !id.Agent.IsNull() || id.Command != nil) {
			diags.AddAttributeError(at.AtName("identity"), "name conflicts with the rest of identity",
				"name refers to an identity of the catalog, which is complete. Remove name, or the other arguments of identity.")
		}
	}
	if !s.Tunnel.IsNull() && s.Jump != nil {
		diags.AddAttributeError(path.Root("ssh").AtName("tunnel"), "tunnel conflicts with jump",
			"tunnel refers to a jump host of the catalog, jump lists jump hosts here. Remove one of the two.")
	}
}

// restoreHost is the reverse of host, for import.
func restoreHost(ctx context.Context, h engine.Host) (hostModel, diag.Diagnostics) {
	var diags, ds diag.Diagnostics
	m := hostModel{Name: types.StringValue(h.Name), Local: types.BoolNull(), Region: optional(h.Region), Priority: optionalInt(h.Priority),
		AllowFirewall: optionalBool(h.AllowFirewall), ProxyImage: optional(h.ProxyImage), ForceDestroy: types.BoolValue(false),
		Ref:   types.StringValue(h.Ref()),
		Facts: types.ObjectNull(attrTypes(factFields))}
	m.Local = optionalBool(h.Local)
	m.Labels, diags = mapValue(ctx, h.Labels)
	attrs := hostObjectTypes()
	m.Capacity, m.Cost, m.SSH = types.ObjectNull(attrs["capacity"]), types.ObjectNull(attrs["cost"]), types.ObjectNull(attrs["ssh"])
	if h.Capacity != nil {
		m.Capacity, ds = types.ObjectValueFrom(ctx, attrs["capacity"], capacityModel{MaxSandboxes: optionalInt(h.Capacity.MaxSandboxes)})
		diags.Append(ds...)
	}
	if h.Cost != nil {
		m.Cost, ds = types.ObjectValueFrom(ctx, attrs["cost"],
			costModel{PerHour: optional(h.Cost.PerHour), CPU: optionalInt(h.Cost.CPU), MemoryMB: optionalInt(h.Cost.MemoryMB),
				GPU: optionalInt(h.Cost.GPU), DiskMB: optionalInt(h.Cost.DiskMB), Idle: optional(h.Cost.Idle)})
		diags.Append(ds...)
	}
	if h.SSH != nil {
		s := sshModel{hopModel: restoreHop(*h.SSH)}
		for _, j := range h.SSH.Jump {
			s.Jump = append(s.Jump, restoreHop(j))
		}
		m.SSH, ds = types.ObjectValueFrom(ctx, attrs["ssh"], s)
		diags.Append(ds...)
	}
	return m, diags
}

func restoreHop(s extensions.SSH) hopModel {
	m := hopModel{Address: optional(s.Address), Alias: optional(s.Alias), Port: optionalInt(s.Port), User: optional(s.User),
		HostKey: optional(s.HostKey), KnownHosts: optional(s.KnownHosts), HostCA: optional(s.HostCA)}
	if id := s.Identity; id != nil {
		m.Identity = &identityRefModel{PrivateKeyFile: optional(id.PrivateKeyFile), CertificateFile: optional(id.CertificateFile),
			Agent: optionalBool(id.Agent), Command: id.Command}
	}
	return m
}

// hostObjectTypes reads the nested types from the schema, their only definition.
func hostObjectTypes() map[string]map[string]attr.Type {
	out := map[string]map[string]attr.Type{}
	for name, t := range schemaOf(&hostResource{}).Type().(attr.TypeWithAttributeTypes).AttributeTypes() {
		if o, ok := t.(types.ObjectType); ok {
			out[name] = o.AttrTypes
		}
	}
	return out
}

func optionalBool(b bool) types.Bool {
	if !b {
		return types.BoolNull()
	}
	return types.BoolValue(true)
}

type factsModel struct {
	OS       types.String `tfsdk:"os"`
	Arch     types.String `tfsdk:"arch"`
	CPUs     int64        `tfsdk:"cpus"`
	MemoryMB int64        `tfsdk:"memory_mb"`
	Docker   types.String `tfsdk:"docker"`
	Compose  types.String `tfsdk:"compose"`
	KVM      bool         `tfsdk:"kvm"`
	GPU      bool         `tfsdk:"gpu"`
	Egress   types.String `tfsdk:"egress"`
	Expiry   types.String `tfsdk:"expiry"`
}

func factsValue(ctx context.Context, f extensions.HostFacts) (types.Object, diag.Diagnostics) {
	return types.ObjectValueFrom(ctx, attrTypes(factFields),
		factsModel{OS: optional(f.OS), Arch: optional(f.Arch), CPUs: f.CPUs, MemoryMB: f.MemoryMB,
			Docker: optional(f.Docker), Compose: optional(f.Compose), KVM: f.KVM, GPU: f.GPU,
			Egress: optional(string(f.Egress)), Expiry: optional(string(f.Expiry))})
}
