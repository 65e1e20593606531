package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

var routeFields = []computedField{
	{name: "chosen", typ: types.StringType, doc: "Place that runs the sandbox, such as `ext.local` or `ext.compose-ssh@build1`."},
	{name: "why", typ: types.StringType, doc: "Why it was chosen. `sandboxer_quote` shows why other places were not."},
	{name: "attempts", typ: stringsType, doc: "What was tried, in order, such as `ext.e2b: exhausted: …`, `ext.local: ready`."},
}

type rejectedModel struct {
	Candidate string         `tfsdk:"candidate"`
	Refusals  []refusalModel `tfsdk:"refusals"`
}

type routeModel struct {
	Chosen   types.String `tfsdk:"chosen"`
	Why      types.String `tfsdk:"why"`
	Attempts []string     `tfsdk:"attempts"`
}

func routeValue(ctx context.Context, r engine.Route) (types.Object, diag.Diagnostics) {
	m := routeModel{Chosen: optional(r.Chosen), Why: optional(r.Why), Attempts: []string{}}
	for _, a := range r.Attempts {
		line := a.Candidate + ": " + a.Outcome
		if a.Reason != "" {
			line += ": " + a.Reason
		}
		m.Attempts = append(m.Attempts, line)
	}
	return types.ObjectValueFrom(ctx, attrTypes(routeFields), m)
}

func newRejected(list []engine.Rejected) []rejectedModel {
	out := []rejectedModel{}
	for _, x := range list {
		if !engine.UnnamedDouble(x.Refusals) {
			out = append(out, rejectedModel{Candidate: x.Candidate, Refusals: newRefusals(x.Refusals)})
		}
	}
	return out
}

var reachabilityFields = []computedField{
	{name: "ssh", typ: types.StringType, doc: "Destination for `ssh`, if the place has one."},
	{name: "remote_dir", typ: types.StringType, doc: "Path of the workspace on the host."},
	{name: "host", typ: types.StringType, doc: "Name of the host that runs it."},
	{name: "compose_project", typ: types.StringType, doc: "Name of the compose project."},
	{name: "work_dir", typ: types.StringType, doc: "Path of the workspace inside the sandbox."},
	{name: "urls", typ: types.MapType{ElemType: types.StringType}, doc: "URL per service."},
	{name: "ports", typ: types.MapType{ElemType: types.StringType}, doc: "Address per `service/port`."},
}

type reachabilityModel struct {
	SSH            types.String      `tfsdk:"ssh"`
	RemoteDir      types.String      `tfsdk:"remote_dir"`
	Host           types.String      `tfsdk:"host"`
	ComposeProject types.String      `tfsdk:"compose_project"`
	WorkDir        types.String      `tfsdk:"work_dir"`
	URLs           map[string]string `tfsdk:"urls"`
	Ports          map[string]string `tfsdk:"ports"`
}

func reachabilityValue(ctx context.Context, r engine.Reachability) (types.Object, diag.Diagnostics) {
	m := reachabilityModel{SSH: optional(r.SSH), RemoteDir: optional(r.RemoteDir), Host: optional(r.Host),
		ComposeProject: optional(r.ComposeProject), WorkDir: optional(r.WorkDir), URLs: r.URLs, Ports: r.Ports}
	if m.URLs == nil {
		m.URLs = map[string]string{}
	}
	if m.Ports == nil {
		m.Ports = map[string]string{}
	}
	return types.ObjectValueFrom(ctx, attrTypes(reachabilityFields), m)
}
