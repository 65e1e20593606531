package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestInputsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	in := map[string]any{"s": "x", "n": int64(9007199254740993), "f": 1.5, "b": true, "l": []any{"a", int64(2)}, "m": map[string]any{"k": "v"}}
	v, err := inputsValue(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := inputsOf(v)
	if err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%v became %v (%v)", in, out, err)
	}
	asMap := types.DynamicValue(types.MapValueMust(types.StringType, map[string]attr.Value{"k": types.StringValue("v")}))
	asObject := types.DynamicValue(types.ObjectValueMust(map[string]attr.Type{"k": types.StringType},
		map[string]attr.Value{"k": types.StringValue("v")}))
	if !sameInputs(asMap, asObject) {
		t.Error("a map and an object of the same content differ")
	}
	if !sameInputs(types.DynamicNull(), types.DynamicValue(types.ObjectValueMust(map[string]attr.Type{}, map[string]attr.Value{}))) {
		t.Error("null and {} differ")
	}
	if sameInputs(asMap, types.DynamicUnknown()) {
		t.Error("an unknown value is the same as a known one")
	}
}

func TestInputsFromTheLedgersJSONKeepWholeNumbers(t *testing.T) {
	t.Parallel()
	for _, n := range []any{float64(3), json.Number("3"), 3, int64(3)} {
		v, err := inputsValue(map[string]any{"n": n})
		if err != nil {
			t.Fatal(err)
		}
		got, err := inputsOf(v)
		if err != nil || got["n"] != int64(3) {
			t.Errorf("%T became %T %v (%v)", n, got["n"], got["n"], err)
		}
	}
	huge, _, _ := big.ParseFloat("99999999999999999999", 10, 512, big.ToNearestEven)
	if _, err := plainNumber(huge); err == nil {
		t.Error("a number beyond 64 bits was accepted")
	}
}

func list(entries ...attr.Value) types.List { return types.ListValueMust(types.StringType, entries) }

func ref(h engine.Host) attr.Value { return types.StringValue(h.Ref()) }

func TestAHostMovesOnlyWhenTheMachineChanges(t *testing.T) {
	t.Parallel()
	here := engine.Host{Name: "here", Local: true}
	dearer := engine.Host{Name: "here", Local: true, Priority: 3, Cost: &extensions.HostCost{PerHour: "9.00 USD"}}
	far := engine.Host{Name: "far", SSH: &extensions.SSH{Address: "10.0.0.5"}}
	moved := engine.Host{Name: "far", SSH: &extensions.SSH{Address: "10.0.0.6"}}
	unknown := types.StringUnknown()
	for name, c := range map[string]struct {
		current string
		after   types.List
		want    bool
	}{
		"same machine, other price":      {here.Ref(), list(ref(dearer)), false},
		"another machine":                {here.Ref(), list(ref(far)), true},
		"another address":                {far.Ref(), list(ref(moved)), true},
		"own one among others":           {far.Ref(), list(ref(here), ref(far)), false},
		"own one by name":                {far.Ref(), list(types.StringValue("far")), false},
		"only unknown":                   {here.Ref(), list(unknown), true},
		"own one beside an unknown":      {here.Ref(), list(unknown, ref(here)), false},
		"another beside an unknown":      {here.Ref(), list(unknown, ref(far)), true},
		"list unknown":                   {here.Ref(), types.ListUnknown(types.StringType), true},
		"list removed, on this machine":  {here.Ref(), types.ListNull(types.StringType), false},
		"list removed, on another":       {far.Ref(), types.ListNull(types.StringType), true},
		"this machine gets a name":       {"", list(ref(here)), false},
		"this machine beside an unknown": {"", list(unknown, ref(here)), false},
		"this machine left for another":  {"", list(ref(far)), true},
	} {
		if got := hostsMoved(context.Background(), c.current, list(ref(engine.Host{Name: "before", Local: true})), c.after); got != c.want {
			t.Errorf("%s: moved = %v", name, got)
		}
	}
}

func TestEveryKindHasWordsAndARemedy(t *testing.T) {
	t.Parallel()
	for _, k := range []engine.Kind{extensions.KindInvalid, extensions.KindUnauthorized, extensions.KindNotFound, extensions.KindConflict,
		extensions.KindIndeterminate, extensions.KindExhausted, extensions.KindUnavailable, extensions.KindUnreachable, extensions.KindTimeout,
		extensions.KindUnsupported, extensions.KindInternal} {
		summary, detail := describe(t.Context(), "It failed", extensions.Errorf(k, "the reason"))
		if !strings.HasPrefix(summary, "It failed: ") || !strings.HasPrefix(detail, "The reason.") || !strings.Contains(detail, "What to do: ") {
			t.Errorf("%s: %q %q", k, summary, detail)
		}
	}
	_, detail := describe(t.Context(), "x", fmt.Errorf("wrapped: %w", extensions.Errorf(extensions.KindInvalid, "bad").WithRemedy("do this")))
	if !strings.HasSuffix(detail, "What to do: Do this.") {
		t.Errorf("the error's own remedy is not used: %q", detail)
	}
	if summary, _ := describe(t.Context(), "x", errors.New("no kind")); !strings.Contains(summary,
		explanations[extensions.KindInternal].summary) {
		t.Errorf("an error without a kind: %q", summary)
	}
}

func TestAnErrorPointsToItsArgument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want path.Path
	}{
		{extensions.Errorf(extensions.KindInvalid, "x").At("ttl"), path.Root("ttl")},
		{fmt.Errorf("w: %w", extensions.Errorf(extensions.KindInvalid, "x").At("inputs.repo")), path.Root("inputs")},
		{extensions.Errorf(extensions.KindInvalid, "x").At("route.strategy"), path.Root("profile")},
		{errors.New("x"), path.Root("profile")},
	} {
		if got := fieldPath(c.err, path.Root("profile"), planArguments...); !got.Equal(c.want) {
			t.Errorf("%v points to %s, want %s", c.err, got, c.want)
		}
	}
}

func TestATakenNamePrintsTheImportBlock(t *testing.T) {
	t.Parallel()
	err := extensions.Errorf(extensions.KindConflict, "taken")
	err.ID = "sbx-aaaaaaaaaaaaaaaaaaaa"
	for own, want := range map[engine.ID]bool{"": true, "sbx-bbbbbbbbbbbbbbbbbbbb": true, "sbx-aaaaaaaaaaaaaaaaaaaa": false} {
		var diags diag.Diagnostics
		addCreateError(t.Context(), &diags, path.Empty(), own, engine.Request{Name: "n"}, err)
		if got := strings.Contains(diags[0].Detail(), `id = "sbx-aaaaaaaaaaaaaaaaaaaa"`); got != want {
			t.Errorf("own %q: import block printed = %v", own, got)
		}
	}
}

func TestRefusalsReadLikeSentences(t *testing.T) {
	t.Parallel()
	est := engine.Estimate{Candidates: []engine.EstimateCandidate{
		{Extension: "ext.a", Eligible: true},
		{Extension: "ext.b", Host: "one", Refusals: []engine.Refusal{{Stage: "viability", Reason: "no containers",
			Remedy: "choose a weaker isolation"}}},
		{Extension: "ext.c", Refusals: []engine.Refusal{{Stage: "intent", Reason: "another is pinned"}}},
		{Extension: "ext.d", Refusals: []engine.Refusal{{Stage: "viability", Reason: "it is in eu-west-1", Remedy: "drop the region"}}},
	}}
	want := "- ext.b on one: No containers. To use it: choose a weaker isolation.\n- ext.d: It is in eu-west-1. To use it: drop the " +
		"region.\n- and 1 more that the request itself rules out"
	if got := explainRefusals(est, false); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := explainRefusals(est, true); !strings.Contains(got, "ext.c: Another is pinned.") {
		t.Errorf("the whole list lacks one:\n%s", got)
	}
}

func TestAHostSurvivesTheRoundTrip(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, h := range []engine.Host{
		{Name: "here", Local: true},
		{Name: "full", Region: "eu", Labels: map[string]string{"a": "b"}, Priority: 2, AllowFirewall: true,
			Capacity: &extensions.HostCapacity{MaxSandboxes: 3}, Cost: &extensions.HostCost{PerHour: "0.40 USD", CPU: 4, MemoryMB: 1024},
			SSH: &extensions.SSH{Address: "10.0.0.5", Port: 22, User: "sandbox", HostKey: "ssh-ed25519 AAAA",
				Identity: &extensions.SSHIdentity{PrivateKeyFile: "~/.ssh/id", CertificateFile: "c", Agent: true, Command: []string{"warden", "x"}},
				Jump:     []extensions.SSH{{Alias: "bastion", Port: 2222}}}},
	} {
		m, diags := restoreHost(ctx, h)
		back, ds := m.host(ctx, nil)
		diags.Append(ds...)
		if diags.HasError() || back.Ref() != h.Ref() {
			t.Errorf("%s\nbecame\n%s\n%v", h.Ref(), back.Ref(), diags)
		}
	}
}

func TestARequestSurvivesTheRoundTrip(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	req := engine.Request{Profile: "profile.x@1.0.0", NamePrefix: "p-", Hosts: []string{"h"}, Inputs: map[string]any{"n": int64(1)}, TTL: "2h",
		Scope:    "agent",
		Consumer: engine.Consumer{Actor: "atm", RunID: "7"}, Billing: "byok", Env: map[string]string{"A": "1"}, SecretsVersion: 3,
		MaxCost:    "1.00 USD",
		OnConflict: "adopt", OnExpiry: "keep", OnUnreachableDestroy: "forget", Triggers: map[string]string{"t": "1"},
		FromSnapshot: "snp-aaaaaaaaaaaaaaaaaaaa", DesiredMode: "running", DeletionProtection: true, Timeouts: map[string]string{"create": "5m"},
		Resources: &engine.Sizes{CPU: "0.5", MemoryMB: 64, GPU: extensions.GPU{Model: "H100", Count: 2}}}
	m := blank()
	diags := m.restore(ctx, req)
	back, ds := m.request(ctx)
	diags.Append(ds...)
	if diags.HasError() || !reflect.DeepEqual(req, back) {
		t.Errorf("%+v\nbecame\n%+v\n%v", req, back, diags)
	}
}

func TestEveryAttributeIsDocumented(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]interface{ GetMarkdownDescription() string }{"sandbox": schemaOf(&sandboxResource{}),
		"host": schemaOf(&hostResource{}), "snapshot": schemaOf(&snapshotResource{})} {
		if r.GetMarkdownDescription() == "" {
			t.Errorf("%s has no description", name)
		}
	}
	for _, s := range []interface {
		ValidateImplementation(context.Context) diag.Diagnostics
	}{schemaOf(&sandboxResource{}), schemaOf(&hostResource{}), schemaOf(&snapshotResource{})} {
		if d := s.ValidateImplementation(context.Background()); d.HasError() {
			t.Error(d)
		}
	}
	for _, attrs := range []map[string]string{described(schemaOf(&sandboxResource{}).Attributes),
		described(schemaOf(&hostResource{}).Attributes), described(schemaOf(&snapshotResource{}).Attributes)} {
		for name, doc := range attrs {
			if doc == "" {
				t.Errorf("%s is not documented", name)
			}
		}
	}
}

func described[A interface{ GetMarkdownDescription() string }](attrs map[string]A) map[string]string {
	out := map[string]string{}
	for name, a := range attrs {
		out[name] = a.GetMarkdownDescription()
	}
	return out
}

func TestALogRecordCarriesNoSecret(t *testing.T) {
	t.Parallel()
	fields := map[string]any{}
	addField(fields, "", slog.Any("key", newSecret("hunter2")))
	addField(fields, "g.", slog.Group("in", slog.Any("error", errors.New("boom"))))
	if fields["key"] != extensions.Redacted || fields["g.in.error"] != "boom" {
		t.Errorf("%v", fields)
	}
}

func TestTestDoublesThatNobodyNamedAreNotShown(t *testing.T) {
	t.Parallel()
	double := []engine.Refusal{{Stage: "intent", Rule: "intent.named-only", Reason: "it is a test double"}}
	pinned := []engine.Refusal{{Stage: "intent", Rule: "intent.pin", Reason: "the profile pins another"}}
	got := newQuoteCandidates([]engine.EstimateCandidate{
		{Extension: "ext.local", Eligible: true}, {Extension: "ext.stub", Refusals: double}, {Extension: "ext.far", Refusals: pinned}})
	if len(got) != 2 || got[0].Extension != "ext.local" || got[1].Extension != "ext.far" {
		t.Errorf("the quote shows %+v", got)
	}
	route := newQuoteRoute(engine.Route{Refused: []engine.Rejected{{Candidate: "ext.stub", Refusals: double},
		{Candidate: "ext.far", Refusals: pinned}}})
	if len(route.Refused) != 1 || route.Refused[0].Candidate != "ext.far" {
		t.Errorf("the route shows %+v", route.Refused)
	}
}

func TestASnapshotThatMayExistIsNotToldAsNone(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{"": true, "snp-aaaaaaaaaaaaaaaaaaaa": false} {
		if got := notTaken("sbx-x", engine.SnapshotView{ID: id}); strings.HasPrefix(got, "No snapshot") != want {
			t.Errorf("%q: %s", id, got)
		}
	}
}
