package engine_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/e2btest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal/modaltest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/openshelltest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

var update = flag.Bool("update", false, "write the golden files")

// market is a bench where every hosted place is configured, each at a fake of its own.
type market struct {
	*bench
	e2b       *e2btest.Vendor
	daytona   *daytonatest.Vendor
	vercel    *verceltest.Vendor
	modal     *modaltest.Vendor
	openshell *openshelltest.Gateway
}

// newMarket has each profile choose the lowest cost.
func newMarket(t *testing.T, profiles map[string]string, more ...with) market {
	t.Helper()
	m := market{e2b: e2btest.Start(t), daytona: daytonatest.Start(t), vercel: verceltest.Start(t), modal: modaltest.Start(t),
		openshell: openshelltest.Start(t, openshelltest.OIDC)}
	files := map[string]string{
		"extensions/ext.e2b.yaml": fmt.Sprintf("id: ext.e2b\nhandler: e2b\nconfig: { plan: pro, api_url: %q, sandbox_url: %q }\n",
			m.e2b.APIURL, m.e2b.SandboxURL),
		"extensions/ext.daytona.yaml": fmt.Sprintf("id: ext.daytona\nhandler: daytona\nconfig: { api_url: %q }\n", m.daytona.APIURL),
		"extensions/ext.vercel.yaml":  fmt.Sprintf("id: ext.vercel\nhandler: vercel\nconfig: { plan: pro, api_url: %q }\n", m.vercel.APIURL),
		"extensions/ext.openshell.yaml": fmt.Sprintf("id: ext.openshell\nhandler: openshell\nconfig: { address: %q, oidc_issuer: %q, "+
			"oidc_client_id: %q, driver: docker }\n", m.openshell.URL, m.openshell.Issuer, m.openshell.ClientID),
		"extensions/ext.modal.yaml": fmt.Sprintf("id: ext.modal\nhandler: modal\nconfig: { server_url: %q }\n", m.modal.URL),
	}
	for name, text := range profiles {
		route := "route: { strategy: lowest-cost }\n"
		if strings.Contains(text, "\nroute: ") {
			route = ""
		}
		files["profiles/"+name+".yaml"] = "id: profile." + name + "\nversion: \"1.0.0\"\n" + route + "isolation: { level: container }\n" + text
	}
	m.bench = newBench(t, append([]with{onFiles(files), func(b *bench) {
		rent(&b.Options, logins{
			"ext.e2b": {"api_key": m.e2b.Key}, "ext.daytona": {"api_key": m.daytona.Key},
			"ext.vercel":    {"token": m.vercel.Token, "team_id": m.vercel.Team, "project_id": m.vercel.Project},
			"ext.modal":     {"token_id": m.modal.TokenID, "token_secret": m.modal.TokenSecret},
			"ext.openshell": {"oidc_client_secret": m.openshell.Secret},
		})
	}}, more...)...)
	return m
}

const (
	denied = "network: { default: deny }\nttl: { default: 1h, max: 24h }\n"
	sized  = denied + "resources: { cpu: 2, memory_mb: 4096 }\n"
)

// For each thing that a profile can ask for, what every vendor would cost at most, or why it cannot.
func TestEveryVendorHasAPriceOrAReason(t *testing.T) {
	t.Parallel()
	const files = "workspace: { mode: remote-canonical, access: rw }\ninputs: { repo: { type: string } }\n"
	asked := map[string]string{
		"plain":            denied,
		"sized":            sized,
		"sized, an image":  sized + "image: { pull: \"debian:12-slim\" }\n",
		"sized at best":    denied + "resources: { cpu: 2, memory_mb: 4096, best_effort: true }\n",
		"disk":             denied + "resources: { disk_mb: 10240 }\n",
		"a region":         sized + "route: { strategy: lowest-cost, constraints: { region: eu } }\n",
		"gpu":              denied + "image: { pull: \"debian:12-slim\" }\nresources: { gpu: { count: 1, model: H100 } }\n",
		"an image":         denied + "image: { pull: \"debian:12-slim\" }\n",
		"a Dockerfile":     denied + files + "image: { build: { context: \".\" } }\n",
		"a stack":          denied + files + "compose: { file: compose.yaml }\n",
		"two days":         "network: { default: deny }\nttl: { default: 48h, max: 48h }\n",
		"an open network":  "network: { default: allow }\nttl: { default: 1h, max: 24h }\n",
		"names on a list":  "network: { default: deny, egress: [\"pypi.org:443\"] }\nttl: { default: 1h, max: 24h }\n",
		"networks on one":  "network: { default: deny, egress: [\"10.2.0.0/16:5432\"] }\nttl: { default: 1h, max: 24h }\n",
		"read-only files":  denied + "workspace: { mode: remote-canonical, access: ro }\ninputs: { repo: { type: string } }\n",
		"an end when idle": "network: { default: deny }\nttl: { default: 1h, max: 24h, idle_reap: 10m }\n",
	}
	vendors := []string{"daytona", "e2b", "modal", "openshell", "vercel"}
	names := slices.Sorted(maps.Keys(asked))
	profiles := map[string]string{}
	for i, name := range names {
		for _, v := range vendors {
			profiles[fmt.Sprintf("p%d-%s", i, v)] = "extension: ext." + v + "\n" + asked[name]
		}
	}
	m := newMarket(t, profiles)
	repo := folder(t, map[string]string{"Dockerfile": "FROM debian:12-slim\nRUN true\n", "compose.yaml": "services: { web: { image: nginx } }\n"})
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, "%s\n", name)
		for _, v := range vendors {
			req := engine.Request{Profile: fmt.Sprintf("profile.p%d-%s", i, v), Name: v}
			if strings.Contains(asked[name], "repo:") {
				req.Inputs = map[string]any{"repo": repo}
			}
			p, err := m.Plan(t.Context(), req)
			says := "up to " + p.Estimate.Maximum + " " + p.Estimate.Currency
			switch {
			case err != nil:
				says = whyNot(err, v)
			case p.Estimate.Maximum == "":
				says = "its price is unknown"
			}
			fmt.Fprintf(&b, "  %-9s  %s\n", v, says)
		}
	}
	const golden = "testdata/vendors.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || b.String() != string(want) {
		t.Errorf("%v; it is now:\n%s", err, b.String())
	}
}

// whyNot is what a refusal says of a vendor, without remedies.
func whyNot(err error, vendor string) string {
	var all []string
	for line := range strings.Lines(err.Error()) {
		if reason, ok := strings.CutPrefix(line, "- ext."+vendor+": "); ok {
			reason, _, _ = strings.Cut(reason, " What would help:")
			all = append(all, strings.TrimSuffix(reason, "."))
		}
	}
	if len(all) == 0 {
		return strings.TrimPrefix(err.Error(), "ext."+vendor+": check: ")
	}
	return strings.Join(all, "; ")
}

// Modal is asked for the size that its price list counts for a profile without one: it tells nobody what it gave or what was
// used.
func TestModalGivesTheSizeThatItsPriceListCounts(t *testing.T) {
	t.Parallel()
	m := newMarket(t, map[string]string{"plain": "extension: ext.modal\n" + denied})
	s := m.create(engine.Request{Profile: "profile.plain", Name: "one"})
	asked := m.modal.Sandboxes()[0].Asked.GetResources()
	list, err := os.ReadFile("catalog/builtin/prices/prices.modal.yaml")
	want := fmt.Sprintf("defaults: { cpu: \"%d\", memory_mb: %d }", asked.GetMilliCpuMax()*2/1000, asked.GetMemoryMbMax())
	if err != nil || !strings.Contains(string(list), want) {
		t.Errorf("%v; it was asked for %s", err, want)
	}
	m.end(s)
}

// Modal ends a sandbox at its deadline, and says so: its end is known.
func TestModalTellsWhenASandboxesTimeWasUp(t *testing.T) {
	t.Parallel()
	m := newMarket(t, map[string]string{"plain": "extension: ext.modal\n" + denied})
	s := m.create(engine.Request{Profile: "profile.plain", Name: "one", TTL: "10m"})
	m.modal.Clock().Advance(11 * time.Minute)
	later := m.reopen(ahead(func() time.Duration { return 11 * time.Minute }))
	r, err := later.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{})
	if err != nil || !r.AlreadyGone || len(r.Notices) > 0 || len(r.Charges) == 0 {
		t.Errorf("%+v, %s", r, told(err))
	}
	row, err := m.book().Get(t.Context(), s.ID)
	late := row.EndedAt.Sub(s.ExpiresAt)
	if err != nil || row.EndEstimated || late < 0 || late > 5*time.Second {
		t.Errorf("it ended at %s, estimated %t, with a deadline at %s; %v", row.EndedAt, row.EndEstimated, s.ExpiresAt, err)
	}
}

// A quote does not warn of a use that Modal does not let a sandbox have.
func TestAQuoteOfModalSaysThatItsSizeIsItsLimit(t *testing.T) {
	t.Parallel()
	m := newMarket(t, map[string]string{"plain": "extension: ext.modal\n" + denied})
	q, err := m.Quote(t.Context(), engine.Request{Profile: "profile.plain", Name: "one"}, engine.QuoteOptions{})
	if err != nil {
		t.Fatal(told(err))
	}
	all := strings.Join(q.Estimate.Assumptions, "\n")
	if strings.Contains(all, "the request is charged;") || !strings.Contains(all, "cannot use more than the request") {
		t.Errorf("it assumes:\n%s", all)
	}
}

// The cheapest vendor has no room and the second does not answer: the third takes it, and settles by its own meter. A gateway of
// one's own, whose cost nobody has said, comes last.
func TestTheThirdVendorTakesItAndSettlesByItsOwnMeter(t *testing.T) {
	t.Parallel()
	takesLong(t)
	m := newMarket(t, map[string]string{"sized": denied + "resources: { cpu: 2, memory_mb: 4096, best_effort: true }\n"},
		func(b *bench) { delete(b.Credentials, "ext.e2b") }) // it has no meter to read, and would be cheaper
	req := engine.Request{Profile: "profile.sized", Name: "one"}
	p, err := m.Plan(t.Context(), req)
	if order := strings.Join(p.Route.Order, " "); err != nil || order != "ext.daytona ext.modal ext.vercel ext.openshell" {
		t.Fatalf("%s: %v", order, err)
	}
	m.daytona.Inject(daytonatest.Fault{On: "POST /sandbox", Status: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}},
		Body: `{"statusCode":400,"message":"Total CPU limit exceeded. Maximum allowed: 10.","error":"Bad Request"}`})
	m.modal.Shut()
	s, err := m.Create(t.Context(), req, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	var tried []string
	for _, a := range s.Route.Attempts {
		tried = append(tried, a.Candidate+" "+a.Outcome)
	}
	if got := strings.Join(tried, ", "); got != "ext.daytona exhausted, ext.modal unreachable, ext.vercel ready" {
		t.Errorf("tried: %s", got)
	}
	m.vercel.Clock().Advance(30 * time.Minute)
	if _, err := m.reopen(ahead(func() time.Duration { return 30 * time.Minute })).Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(told(err))
	}
	charges, err := m.Charges(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range charges {
		amount := c.Amount
		if c.Component == "memory" && len(amount) > 4 { // 4 GiB for half an hour, and for what the test took: 0.0424 and some
			amount = amount[:4]
		}
		lines = append(lines, c.Component+" "+amount)
	}
	// A quote counts all of the processors' time, and Vercel's meter what was used: nothing.
	if got := strings.Join(lines, ", "); got != "creation 0.0000006, egress 0.00, memory 0.04, vcpu 0.00" {
		t.Errorf("settled: %s", got)
	}
	m.closed()
}
