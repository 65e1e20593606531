package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

var routeFields = []computedField{
	{name: "strategy", typ: types.StringType, doc: "How places were ranked."},
	{name: "order", typ: stringsType, doc: "The candidates that survived, first choice first, fixed before the first attempt."},
	{name: "chosen", typ: types.StringType, doc: "The candidate that holds the sandbox."},
	{name: "explained", typ: types.StringType, doc: "Why this one comes first."},
	{name: "attempts", doc: "What was tried, in order.", list: []computedField{
		{name: "candidate", typ: types.StringType, doc: "The candidate."},
		{name: "outcome", typ: types.StringType, doc: "`ready`, or what happened instead."},
		{name: "reason", typ: types.StringType, doc: "Why, if it did not become ready."},
	}},
	{name: "refused", doc: "Candidates that did not survive, with the reasons; test doubles that nobody named are left out.", list: []computedField{
		{name: "candidate", typ: types.StringType, doc: "The candidate."},
		{name: "refusals", list: refusalFields, doc: "Why it was refused."},
	}},
}

type attemptModel struct {
	Candidate string       `tfsdk:"candidate"`
	Outcome   string       `tfsdk:"outcome"`
	Reason    types.String `tfsdk:"reason"`
}

type rejectedModel struct {
	Candidate string         `tfsdk:"candidate"`
	Refusals  []refusalModel `tfsdk:"refusals"`
}

type routeModel struct {
	Strategy  types.String    `tfsdk:"strategy"`
	Order     []string        `tfsdk:"order"`
	Chosen    types.String    `tfsdk:"chosen"`
	Explained types.String    `tfsdk:"explained"`
	Attempts  []attemptModel  `tfsdk:"attempts"`
	Refused   []rejectedModel `tfsdk:"refused"`
}

func routeValue(ctx context.Context, r engine.Route) (types.Object, diag.Diagnostics) {
	m := routeModel{Strategy: optional(r.Strategy), Order: notNil(r.Order), Chosen: optional(r.Chosen), Explained: optional(r.Explained),
		Attempts: []attemptModel{}, Refused: newRejected(r.Refused)}
	for _, a := range r.Attempts {
		m.Attempts = append(m.Attempts, attemptModel{Candidate: a.Candidate, Outcome: a.Outcome, Reason: optional(a.Reason)})
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
	{name: "ssh", typ: types.StringType, doc: "Destination for `ssh`, where the place has one."},
	{name: "remote_dir", typ: types.StringType, doc: "The workspace's path as seen from outside, on the host."},
	{name: "host", typ: types.StringType, doc: "Name of the host it runs on."},
	{name: "compose_project", typ: types.StringType, doc: "Name of the compose project."},
	{name: "work_dir", typ: types.StringType, doc: "The workspace's path as seen inside."},
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
