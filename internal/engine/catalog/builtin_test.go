package catalog_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestBuiltInCatalogHasWhatItPromises(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load(nil, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"profile.agent-dev", "profile.base", "profile.build", "profile.compose-e2e", "profile.container", "profile.quickstart"}
	var got []string
	for _, p := range c.Profiles.All() {
		got = append(got, p.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("profiles %v, want %v", got, want)
	}
	var ids []string
	for _, b := range c.Bindings {
		ids = append(ids, b.ID)
	}
	if want := []string{"ext.local", "ext.saas-stub", "ext.saas-stub-eventual"}; !slices.Equal(ids, want) {
		t.Errorf("bindings %v, want %v", ids, want)
	}
	if len(c.Notices) != 0 {
		t.Errorf("the built-in catalog alone gives notices: %v", c.Notices)
	}
	b, ok := c.Binding("ext.local")
	if !ok || b.PerHour != "0.00 USD" || b.PerHourSource == "" || b.PerHourAsOf == "" {
		t.Errorf("ext.local states no sourced cost: %+v", b)
	}
	for _, ext := range []string{"ext.saas-stub", "ext.saas-stub-eventual"} {
		book := c.Book(ext)
		if book == nil {
			t.Fatalf("%s has no price book", ext)
		}
		var units []string
		for _, p := range book.Components {
			units = append(units, p.Unit)
		}
		if !slices.Equal(units, []string{"creation", "vcpu-second", "gib-second", "snapshot-gib-month"}) {
			t.Errorf("%s is priced by %v", ext, units)
		}
	}
	if c.Book("ext.local") != nil {
		t.Error("ext.local has a price book as well as a cost")
	}
}

func TestEveryBuiltInProfileResolves(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load(nil, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Profiles.All() {
		id := p.ID
		req := profile.Request{Profile: id}
		if id != "profile.base" {
			req.Inputs = map[string]any{"repo": "./app"}
		}
		r, err := profile.Resolve(c.Profiles, req)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if r.Spec.Network.Default != "deny" || r.Spec.TTL <= 0 || r.Spec.MaxTTL < r.Spec.TTL || len(r.Digest) != 64 {
			t.Errorf("%s resolves to %+v", id, r.Spec)
		}
	}
}

func TestQuickstartIsProcessIsolatedDeniedAndShort(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load(nil, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	r, err := profile.Resolve(c.Profiles, profile.Request{Profile: "profile.quickstart"})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Spec
	if s.Isolation != extensions.IsolationProcess || s.Network.Default != "deny" || s.Workspace.Access != "rw" ||
		time.Duration(s.TTL) != time.Hour || time.Duration(s.MaxTTL) != 24*time.Hour || s.Workspace.Repo != "" ||
		r.Policy.Extension != "ext.local" {
		t.Errorf("quickstart resolves to %+v, policy %+v", s, r.Policy)
	}
}

func TestBuiltInBindingsWithoutTheirHandlerAreLeftOut(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load(nil, handlers()[:1], today)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Bindings) != 1 || c.Bindings[0].ID != "ext.local" {
		t.Errorf("bindings %v", c.Bindings)
	}
	for _, b := range c.Books {
		if b.Extension != "" {
			t.Errorf("%s prices %s, which does not exist", b.ID, b.Extension)
		}
	}
}

// The program's own dates are right, however wrong the clock of the machine is.
func TestTheBuiltinCatalogIsReadByAnyClock(t *testing.T) {
	t.Parallel()
	if _, err := catalog.Load(nil, handlers(), time.Unix(0, 0)); err != nil {
		t.Error(err)
	}
}
