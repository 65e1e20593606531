package route

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata")

// testCase is the query.json of a txtar file. Candidates start as able places
// and are patched by what the file says.
type testCase struct {
	Spec         json.RawMessage
	TTL          string
	Options      map[string]map[string]any
	Policy       Policy
	Hosts        []string
	Prefer       []string
	Fallback     []string
	Mode         string
	Billing      string
	Origin       *Origin
	FromSnapshot string // handler that made it
	Permission   Permission
	Reach        Reach
	Candidates   []json.RawMessage
}

func able() Candidate {
	return Candidate{
		Binding: "ext.able", Handler: "able", Place: extensions.PlaceAccount,
		Capabilities: extensions.Capabilities{
			IsolationLevels: []extensions.Isolation{extensions.IsolationContainer, extensions.IsolationMicroVM}, Egress: extensions.EgressDomain,
			PricingModel: extensions.PricingMetered, Expiry: extensions.ExpiryNative, Regions: []string{"*"}, ReadOnlyWorkspace: true,
			CIDRPorts: extensions.PortsAny, DomainPorts: extensions.PortsAny, DNS: extensions.DNSClosed, Ingress: extensions.IngressClosed,
			Entrypoints: slices.Clone(extensions.EntrypointModes),
			IdleReap:    extensions.IdleReapNative,
			Limits:      slices.Clone(extensions.Limits), GPU: true, SecretsAs: slices.Clone(extensions.SecretDeliveries),
		},
		Provides: extensions.Provides{RuntimeKinds: []string{"native", "npm"},
			RequirementKinds: []string{"git", "image", "compose", "containers"}},
		Powers: slices.Clone(extensions.Powers), Find: extensions.Find{Strength: extensions.FindStrong},
	}
}

func readCase(t *testing.T, data []byte) Query {
	t.Helper()
	decode := func(data []byte, into any) {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(into); err != nil {
			t.Fatalf("query.json: %v", err)
		}
	}
	var tc testCase
	decode(data, &tc)
	q := Query{Options: tc.Options, Policy: tc.Policy, Hosts: tc.Hosts, Prefer: tc.Prefer, Fallback: tc.Fallback, DesiredMode: tc.Mode,
		Billing: tc.Billing, Origin: tc.Origin, Permission: tc.Permission, Reach: tc.Reach}
	q.Spec.Network.Default = "allow"
	if tc.Spec != nil {
		decode(tc.Spec, &q.Spec)
	}
	if tc.TTL != "" {
		ttl, err := time.ParseDuration(tc.TTL)
		if err != nil {
			t.Fatal(err)
		}
		q.Spec.TTL = extensions.Duration(ttl)
	}
	if tc.FromSnapshot != "" {
		q.Spec.FromSnapshot = &extensions.SnapshotRef{ID: "snp-x", Handle: extensions.SnapshotHandle{Extension: tc.FromSnapshot}}
	}
	for _, raw := range tc.Candidates {
		c := able()
		decode(raw, &c)
		q.Candidates = append(q.Candidates, c)
	}
	return q
}

// tell is the want section: all a Decision says, in a form people review.
func tell(d Decision) string {
	var b strings.Builder
	if d.Chosen != nil {
		fmt.Fprintf(&b, "chosen: %s, because %s\n", d.Chosen.ID(), d.Why)
	}
	if err := d.Err(); err != nil {
		fmt.Fprintf(&b, "%s: %s\nremedy: %s\n", extensions.KindOf(err), err, extensions.RemedyOf(err))
		if f := extensions.FieldOf(err); f != "" {
			fmt.Fprintf(&b, "field: %s\n", f)
		}
	}
	fmt.Fprintf(&b, "order: %s\nfallbacks: %s\n", strings.Join(ids(d.Order), " "), strings.Join(ids(d.Fallbacks), " "))
	for _, r := range d.Refusals() {
		fmt.Fprintf(&b, "refused: %s at %s by %s\n  %s\n  %s\n", r.Candidate, r.Stage, r.Rule, r.Reason, r.Help)
	}
	for _, n := range d.Notices {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return b.String()
}

func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(file)
			if err != nil || len(a.Files) != 2 {
				t.Fatalf("want query.json and want: %v", err)
			}
			q := readCase(t, a.Files[0].Data)
			d := Select(q)
			got := tell(d)
			if *update {
				a.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want := string(a.Files[1].Data); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if isRule(Rule(name)) {
				provesRule(t, q, d, Rule(name))
			}
		})
	}
}

func isRule(r Rule) bool {
	for _, info := range Rules {
		if info.ID == r {
			return true
		}
	}
	return false
}

// provesRule: the rule refuses one candidate, and lets another pass in the
// same query, so that neither "always" nor "never" would do. A rule about the
// account concerns every place: there another account's query is let pass.
func provesRule(t *testing.T, q Query, d Decision, rule Rule) {
	t.Helper()
	if rule.everywhere() {
		if q.Permission = (Permission{}); d.Chosen != nil || Select(q).Chosen == nil {
			t.Error("it does not depend on the account")
		}
	} else if d.Chosen == nil {
		t.Error("nothing passes")
	}
	if len(d.Refusals()) == 0 {
		t.Error("nothing is refused")
	}
	for _, r := range d.Refusals() {
		if r.Rule != rule || r.Reason == "" || r.Help == "" || !strings.HasPrefix(string(rule), string(r.Stage)+".") {
			t.Errorf("got %+v", r)
		}
	}
}

func TestEveryRuleHasACase(t *testing.T) {
	t.Parallel()
	for _, r := range Rules {
		if _, err := os.Stat(filepath.Join("testdata", string(r.ID)+".txtar")); err != nil {
			t.Error(err)
		}
	}
}
