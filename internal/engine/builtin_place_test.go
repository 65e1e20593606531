package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	every "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/all"
)

// Every built-in profile can be had as it is: from the built-in catalog, with one
// registered host and every source of a workspace that its text promises, and
// none of them at a test double.
func TestEveryBuiltInProfileHasAPlace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := newBench(t, func(b *bench) { b.Extensions, b.Catalog = every.Extensions(), nil })
	host := engine.Host{Name: "sandboxer01", SSH: &extensions.SSH{Address: "192.0.2.1", Port: 22, User: "sandbox", KnownHosts: "/dev/null"}}
	if _, err := e.book().PutHost(ctx, ledger.Host{Account: "acme/web", Name: host.Name, Ref: host.Ref()}); err != nil {
		t.Fatal(err)
	}
	stack := folder(t, map[string]string{"compose.yaml": "services: { web: { image: \"python:3.12\" } }\n"})
	sources := map[string]map[string]any{"empty": nil, "folder": {"repo": stack},
		"git": {"repo": "https://git.example.invalid/x.git", "ref": "main"}}
	asked := map[string][]string{
		"profile.base":        {"empty"},
		"profile.quickstart":  {"empty", "folder", "git"},
		"profile.agent-dev":   {"empty", "folder", "git"},
		"profile.build":       {"folder", "git"},
		"profile.compose-e2e": {"folder", "git"},
		"profile.container":   {"empty", "folder", "git"},
	}
	built, err := catalog.Load(nil, every.Extensions(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range built.Profiles.All() {
		id := p.ID
		if len(asked[id]) == 0 {
			t.Errorf("%s is in the built-in catalog and this test asks nothing of it", id)
		}
		for _, from := range asked[id] {
			q, err := e.Quote(ctx, engine.Request{Profile: id, Inputs: sources[from]}, engine.QuoteOptions{})
			if err != nil {
				t.Errorf("%s from %s: %v\n%s", id, from, err, q.Route.Explained)
				continue
			}
			i := slices.IndexFunc(q.Estimate.Candidates, func(c engine.EstimateCandidate) bool { return c.Order == 1 && c.Eligible })
			if i < 0 {
				t.Errorf("%s from %s has no place: %s", id, from, q.Route.Explained)
				continue
			}
			want := "ext.compose-ssh"
			switch id {
			case "profile.base", "profile.quickstart":
				want = "ext.local"
			case "profile.container":
				want = "ext.docker"
			}
			if c := q.Estimate.Candidates[i]; c.Extension != want {
				t.Errorf("%s from %s is for %s, want %s", id, from, c.Extension, want)
			}
		}
	}
	// What a request says in place of the default image is judged and taken.
	if _, err := e.Quote(ctx, engine.Request{Profile: "profile.agent-dev", Inputs: map[string]any{"image": "python:3.12"}},
		engine.QuoteOptions{}); err != nil {
		t.Errorf("with an image of the request's: %v", err)
	}
	if _, err := e.Quote(ctx, engine.Request{Profile: "profile.agent-dev", Inputs: map[string]any{"image": "-v /:/host"}},
		engine.QuoteOptions{}); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("with an image that is none: %v", err)
	}
}
