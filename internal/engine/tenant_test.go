package engine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal/modaltest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/openshelltest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel/verceltest"
)

// account is one at the fake of a vendor, behind a killer.
type account struct {
	extension extensions.Extension
	config    map[string]any
	login     map[string]string
	killer    *vendortest.Killer
	there     func() []string // the ids of the sandboxes that it has
	images    func() int      // how many snapshots it has; nil = it keeps none
	made      func() int      // how many sandboxes it ever made
}

// accounts are those of vendors whose look-up of a sandbox proves what it says.
var accounts = map[string]func(testing.TB) account{
	"daytona": func(t testing.TB) account {
		return atDaytona(t, daytonatest.Start(t), map[string]any{})
	},
	"daytona-self": func(t testing.TB) account {
		return atDaytona(t, daytonatest.StartSelfHosted(t), map[string]any{"edition": "self-hosted"})
	},
	"modal": func(t testing.TB) account {
		v := modaltest.Start(t)
		k := v.Killer(t)
		return account{extension: modal.New(), config: map[string]any{"server_url": k.URL}, killer: &k.Killer,
			login: map[string]string{"token_id": v.TokenID, "token_secret": v.TokenSecret},
			there: func() (ids []string) {
				for _, s := range v.Sandboxes() {
					ids = append(ids, s.Name)
				}
				return ids
			}, images: func() int { return len(v.Snapshots()) }, made: v.Creates}
	},
	"openshell": func(t testing.TB) account {
		g := openshelltest.Start(t, openshelltest.OIDC)
		k := g.Killer(t)
		return account{extension: openshell.New(), killer: &k.Killer, login: map[string]string{"oidc_client_secret": g.Secret},
			config: map[string]any{"address": k.URL, "oidc_issuer": g.Issuer, "oidc_client_id": g.ClientID, "driver": "docker"},
			there: func() (ids []string) {
				for _, s := range g.Sandboxes() {
					ids = append(ids, s.GetMetadata().GetLabels()[extensions.LabelID])
				}
				return ids
			}, made: g.Creates}
	},
	"vercel": func(t testing.TB) account {
		v := verceltest.Start(t)
		k := v.Killer(t)
		return account{extension: vercel.New(), config: map[string]any{"plan": "pro", "api_url": k.APIURL}, killer: &k.Killer,
			login: map[string]string{"token": v.Token, "team_id": v.Team, "project_id": v.Project},
			there: func() (ids []string) {
				for _, s := range v.Sandboxes() {
					ids = append(ids, s.Name)
				}
				return ids
			}, images: func() int { return len(v.Snapshots()) }, made: v.Creates}
	},
}

func atDaytona(t testing.TB, v *daytonatest.Vendor, config map[string]any) account {
	t.Helper()
	k := v.Killer(t)
	config["api_url"] = k.APIURL
	return account{extension: daytona.New(), config: config, login: map[string]string{"api_key": v.Key}, killer: &k.Killer,
		there: func() (ids []string) {
			for _, s := range v.Sandboxes() {
				ids = append(ids, s["name"].(string))
			}
			return ids
		}, images: func() int { return len(v.Snapshots()) }, made: v.Creates}
}

// tenant is a bench whose profile runs at one such account, binding ext.hosted.
type tenant struct {
	*bench
	account
	descriptor extensions.Descriptor
}

const atHosted = "ext.hosted"

func newTenant(t *testing.T, name string) tenant {
	t.Helper()
	at := accounts[name](t)
	d, err := extensions.Declared(at.extension, at.config)
	if err != nil {
		t.Fatal(err)
	}
	config := ""
	for _, field := range slices.Sorted(maps.Keys(at.config)) {
		config += fmt.Sprintf("  %s: %q\n", field, at.config[field])
	}
	files := map[string]string{
		"extensions/hosted.yaml": "id: " + atHosted + "\nhandler: " + d.Handler + "\nconfig:\n" + config,
		"profiles/hosted.yaml":   "id: profile.hosted\nversion: \"1.0.0\"\nextension: " + atHosted + "\n" + contained,
	}
	if !d.Capabilities.SelfHosted() {
		files["prices/hosted.yaml"] = prices(atHosted, "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n")
	}
	b := newBench(t, func(b *bench) { rent(&b.Options, logins{atHosted: at.login}) }, onFiles(files), func(b *bench) {
		b.profile, b.rented = "profile.hosted", at.there
	})
	b.fund()
	return tenant{b, at, d}
}

// dies carries out an order in a process that is killed at a point.
func (h tenant) dies(o order, point string) {
	h.t.Helper()
	o.Logins = logins{atHosted: h.login}
	h.killed(o, point)
}

// victim carries out an order in a process that is killed when the vendor has done its nth request, 0 = never, and says how
// many it made.
func (h tenant) victim(o order, n int64) int64 {
	h.t.Helper()
	made, killed := h.cut(o, n)
	if killed != (n > 0) {
		h.t.Fatalf("%s came to its end with %d requests, and should have been killed at request %d", o.Do, made, n)
	}
	return made
}

// cut is victim for an order that may need fewer than n requests, because it asks again and again whether something is ready.
func (h tenant) cut(o order, n int64) (requests int64, killed bool) {
	h.t.Helper()
	o.Logins = logins{atHosted: h.login}
	cmd := h.driver(o)
	var said strings.Builder
	cmd.Stderr = &said
	if err := h.killer.Start(cmd, n, true); err != nil {
		h.t.Fatal(err)
	}
	err := h.killer.Wait()
	if err != nil && n == 0 {
		h.t.Fatalf("%s: %v: %s", o.Do, err, said.String())
	}
	return h.killer.Seen(), err != nil
}

// only is the one sandbox that there is after another run has made it.
func (h tenant) only(at string) engine.Receipt {
	h.t.Helper()
	if there := h.there(); len(there) > 1 {
		h.t.Errorf("%s: the killed run left %v", at, there)
	}
	rec := h.converge(h.profile, "one")
	if there := h.there(); len(there) != 1 || there[0] != string(rec.ID) {
		h.t.Fatalf("%s: there are %v, want %s alone", at, there, rec.ID)
	}
	return rec
}

// leaves ends a sandbox, which is the only one, and demands that nothing is left, here, there or set aside.
func (h tenant) leaves(at string, rec engine.Receipt) {
	h.t.Helper()
	if _, err := h.again(order{Do: "destroy", Receipt: rec}); err != nil {
		h.t.Errorf("%s: the next destroy: %s", at, told(err))
	}
	if there := h.there(); len(there) > 0 {
		h.t.Errorf("%s: %v are left", at, there)
	}
	if held := h.accounted(); held != 0 {
		h.t.Errorf("%s: %d are still held", at, held)
	}
}

// recovered lets the next run settle what the killed one left.
func (h tenant) recovered(at string) {
	h.t.Helper()
	e := h.reopen()
	defer e.Close()
	if err := e.Recover(context.Background(), nil); err != nil {
		h.t.Errorf("%s: the next run: %s", at, told(err))
	}
}

// observed is the only sandbox, as its place tells of it.
func (h tenant) observed(rec engine.Receipt) extensions.Observation {
	h.t.Helper()
	cfg := extensions.Config{Binding: atHosted, Account: "acme/web", StateDir: h.StateDir, Values: h.config,
		Credentials: h.Credentials[atHosted]}
	x, err := h.extension.Open(h.t.Context(), cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = x.Close() }()
	handle, err := extensions.DecodeHandle(rec.Handle)
	if err != nil {
		h.t.Fatal(err)
	}
	all, err := x.Status(h.t.Context(), []extensions.Handle{handle})
	if err != nil {
		h.t.Fatal(err)
	}
	return all[0]
}

// billed demands that each sandbox that the vendor ever made was metered once, and charged where it costs.
func (h tenant) billed() {
	h.t.Helper()
	rows, err := h.reopen().List(h.t.Context(), true)
	if err != nil {
		h.t.Fatal(err)
	}
	lives := 0
	for _, s := range rows {
		lives += len(h.meters(s.ID))
		charges, err := h.Charges(h.t.Context(), s.ID)
		if err != nil || !h.descriptor.Capabilities.SelfHosted() && len(charges) != len(h.meters(s.ID)) {
			h.t.Errorf("%s has %d meters and the charges %+v, %v", s.ID, len(h.meters(s.ID)), charges, err)
		}
	}
	made := h.made()
	if lives != made {
		h.t.Errorf("%d lives were metered, and %d sandboxes were made", lives, made)
	}
}

const soon = 2 * time.Second
