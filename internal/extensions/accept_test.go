package extensions_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What a place declares to lack is refused by the declaration alone, at the field that asks for it.
func TestWhatAPlaceLacksIsRefusedByItsDeclaration(t *testing.T) {
	t.Parallel()
	d := extensions.Descriptor{Handler: "acme", Capabilities: extensions.Capabilities{IsolationLevels: []extensions.Isolation{
		extensions.IsolationContainer}, GPU: true, GPUModels: []string{"T4"}, Regions: []string{"eu"}, MaxTTL: time.Hour,
		SecretsAs: []extensions.SecretDelivery{extensions.SecretsEnv}, Egress: extensions.EgressDomain,
		Entrypoints: []extensions.EntrypointMode{extensions.EntrypointIdle}, IdleReap: extensions.IdleReapNone,
		Provides: extensions.Provides{RequirementKinds: []string{"image"}}}}
	now := time.Now()
	for name, c := range map[string]struct {
		ask   func(*extensions.Spec)
		field string // "" = it can be had
	}{
		"nothing more": {func(*extensions.Spec) {}, ""},
		"an image":     {func(s *extensions.Spec) { s.Image = &extensions.Image{Pull: "a:1"} }, ""},
		"a stack":      {func(s *extensions.Spec) { s.Compose = &extensions.Compose{} }, "compose"},
		"containers":   {func(s *extensions.Spec) { s.Containers = &extensions.Containers{} }, "containers"},
		"a model":      {func(s *extensions.Spec) { s.Resources.GPU = &extensions.GPU{Count: 1, Model: "T4"} }, ""},
		"another model": {func(s *extensions.Spec) { s.Resources.GPU = &extensions.GPU{Count: 1, Model: "H100"} },
			"resources.gpu.model"},
		"a read-only workspace": {func(s *extensions.Spec) { s.Workspace.Access = extensions.AccessRO }, "workspace.access"},
		"its region":            {func(s *extensions.Spec) { s.Region = "eu" }, ""},
		"another region":        {func(s *extensions.Spec) { s.Region = "us" }, "region"},
		"a longer life":         {func(s *extensions.Spec) { s.Deadline = now.Add(2 * time.Hour) }, "ttl"},
		"a life that is over":   {func(s *extensions.Spec) { s.Deadline = now }, "ttl"},
	} {
		id, err := extensions.NewID(nil)
		if err != nil {
			t.Fatal(err)
		}
		spec := extensions.Spec{ID: id, Deadline: now.Add(time.Hour), Network: extensions.Network{Default: "deny"}}
		c.ask(&spec)
		if err := d.AcceptNow(spec, now); extensions.FieldOf(err) != c.field || (err == nil) != (c.field == "") {
			t.Errorf("%s: %v (field %q)", name, err, extensions.FieldOf(err))
		}
	}
}

// A snapshot that the ledger does not know has no handle in a plan: its place is asked for it later.
func TestASnapshotIsRefusedWhereAnotherPlaceKeepsIt(t *testing.T) {
	t.Parallel()
	d := extensions.Descriptor{Handler: "acme", Powers: []extensions.Power{extensions.PowerSnapshot}}
	for handler, want := range map[string]string{"": "", "acme": "", "other": "from_snapshot"} {
		ref := extensions.SnapshotRef{ID: "snp-aaaaaaaaaaaaaaaaaaaa"}
		if handler != "" {
			ref.Handle = extensions.SnapshotHandle{Extension: handler, Version: 1, ID: ref.ID, Ref: "r"}
		}
		if err := d.AcceptSnapshot(&ref); extensions.FieldOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("kept by %q: %v", handler, err)
		}
	}
}

// A field says itself which values it takes, and a wrong one is named.
func TestAFieldSaysWhatItTakes(t *testing.T) {
	t.Parallel()
	fields := []extensions.Field{{Name: "dir", Type: extensions.FieldPath}, {Name: "n", Type: extensions.FieldInt, Max: 9},
		{Name: "any", Type: extensions.FieldInt}, {Name: "name", Type: extensions.FieldString, Form: regexp.MustCompile(`^[a-z]+$`)}}
	for _, c := range []struct {
		name  string
		value any
		fits  bool
	}{
		{"dir", "/work/a", true}, {"dir", "", true}, {"dir", "work", false}, {"dir", "/", false}, {"dir", "/a/../b", false}, {"dir", 7, false},
		{"n", 1, true}, {"n", 9.0, true}, {"n", 0, false}, {"n", 10, false}, {"n", -1, false}, {"any", -1, true}, {"any", 1 << 40, true},
		{"name", "abc", true}, {"name", "", true}, {"name", "a b", false},
	} {
		err := extensions.CheckFields("options", fields, map[string]any{c.name: c.value})
		if (err == nil) != c.fits || err != nil && extensions.FieldOf(err) != "options."+c.name {
			t.Errorf("%s = %v: %v", c.name, c.value, err)
		}
	}
}

func TestAWorkspaceLiesWhereItsOptionSays(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]extensions.Spec{
		"/work": {}, "/a/b": {Options: map[string]any{"workdir": "/a//b/"}}, "": {Workspace: extensions.Workspace{Access: extensions.AccessNone}},
	} {
		if got := s.WorkDir("workdir", "/work"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
