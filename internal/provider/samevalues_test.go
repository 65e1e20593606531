package provider

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// planNew plans a new sandbox that may run at two places.
func (s *server) planNew() *tfprotov6.PlanResourceChangeResponse {
	s.t.Helper()
	is := s.types[sandboxType]
	attrs := map[string]tftypes.Value{}
	for name, typ := range is.AttributeTypes {
		attrs[name] = tftypes.NewValue(typ, nil)
	}
	none := dynamic(s.t, tftypes.NewValue(is, nil))
	for name, v := range map[string]string{"profile": "profile.cheap", "name": "one", "ttl": "2h"} {
		attrs[name] = tftypes.NewValue(tftypes.String, v)
	}
	config := dynamic(s.t, tftypes.NewValue(is, attrs))
	resp, err := s.PlanResourceChange(context.Background(),
		&tfprotov6.PlanResourceChangeRequest{TypeName: sandboxType, PriorState: none, ProposedNewState: config, Config: config})
	if err != nil || slices.ContainsFunc(resp.Diagnostics,
		func(d *tfprotov6.Diagnostic) bool { return d.Severity == tfprotov6.DiagnosticSeverityError }) {
		s.t.Fatalf("plan: %v %+v", err, resp.Diagnostics)
	}
	return resp
}

// Terraform plans again during an apply and rejects any other value; whether a
// key is there, a place answers or money is left may be different by then.
func TestCredentialsHealthAndFundsChangeNoPlannedValue(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	fourPlaces(b)
	ctx := context.Background()
	first := b.server().planNew()
	same := func(when string, s *server) {
		t.Helper()
		if got := s.planNew(); !cmp.Equal(first.PlannedState, got.PlannedState) || string(first.PlannedPrivate) != string(got.PlannedPrivate) {
			t.Errorf("%s something else is planned: %s", when, cmp.Diff(first, got))
		}
	}
	same("with a credential", b.serverWith(map[string]tftypes.Value{"api_key": tftypes.NewValue(tftypes.String, "k")}))
	if _, _, err := b.engine().GrantCredit(ctx, "acme", "5.00 USD", "one", "a test"); err != nil {
		t.Fatal(err)
	}
	same("with credit", b.server())
	b.budget(1_000_000_000)
	same("with a budget", b.server())
	b.script(vendor.Rule{Op: vendor.OpAny, Do: vendor.DoUnreachable})
	s := b.server()
	e := s.ProviderServer.(quickServer).p.now.Load().engine
	if _, err := e.Create(ctx, engine.Request{Profile: "profile.stub", Name: "two", TTL: "1h"}, nil, nil); err == nil {
		t.Fatal("the vendor answers")
	}
	same("beside a place that does not answer", s)
	b.script()
}

func TestARouteTellsItsAttemptsInLines(t *testing.T) {
	t.Parallel()
	var route engine.Route
	if err := json.Unmarshal([]byte(`{"chosen":"ext.b","why":"it is cheaper","attempts":[
		{"candidate":"ext.a@one","outcome":"exhausted","reason":"full"},{"candidate":"ext.b","outcome":"ready"}]}`), &route); err != nil {
		t.Fatal(err)
	}
	v, diags := routeValue(context.Background(), route)
	lines, _ := v.Attributes()["attempts"].(types.List)
	var got []string
	diags.Append(lines.ElementsAs(context.Background(), &got, false)...)
	if want := "ext.a@one: exhausted: full|ext.b: ready"; diags.HasError() || strings.Join(got, "|") != want {
		t.Errorf("%q, %v", got, diags)
	}
}

// The state tells attempts in lines; the ledger keeps all of the decision.
func TestTheLedgerKeepsTheWholeRoute(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	fourPlaces(b)
	b.script(vendor.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota, Times: 1})
	e := b.engine()
	made, err := e.Create(context.Background(), engine.Request{Profile: "profile.cheap", Name: "one", TTL: "1h"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	known, err := e.Lookup(context.Background(), made.ID, "", "")
	r := known.Route
	if err != nil || len(r.Attempts) != 2 || r.Attempts[0].Outcome != "exhausted" || r.Attempts[0].Reason == "" ||
		r.Attempts[1].Outcome != "ready" ||
		len(r.Order) != 2 || r.Strategy != "lowest-cost" || len(r.Refused) == 0 || r.Refused[0].Refusals[0].Rule == "" {
		t.Errorf("%+v, %v", r, err)
	}
}
