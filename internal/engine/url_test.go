package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A URL is asked of the place each time; a place without such addresses is refused at plan where the profile
// requires them, and at the call where it does not.
func TestURLsArePowers(t *testing.T) {
	t.Parallel()
	b := newBench(t, onFiles(map[string]string{
		"profiles/profile.web.yaml": "id: profile.web\nversion: \"1.0.0\"\nextends: profile.stub\nrequires: { capabilities: [url] }\n",
		"profiles/profile.here.yaml": "id: profile.here\nversion: \"1.0.0\"\nextension: ext.local\nisolation: { level: none }\n" +
			"requires: { capabilities: [url] }\n"}))
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.web", Name: "one"})
	first, err := b.URL(ctx, s.Receipt, 8080)
	if err != nil || !strings.HasPrefix(first.Address, "https://8080-") || first.Header.Value.IsZero() || first.ExpiresAt.IsZero() {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := b.reopen().URL(ctx, s.Receipt, 8080); err != nil || again.Header.Value.Reveal() == first.Header.Value.Reveal() {
		t.Errorf("another process gets the header of the first one: %v", err)
	}
	for _, port := range []int{0, -1, 65536} {
		if _, err := b.URL(ctx, s.Receipt, port); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("port %d: %v", port, err)
		}
	}
	_, err = b.Create(ctx, engine.Request{Profile: "profile.here", Name: "two"}, nil, nil)
	if !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(err.Error(), "viability.requires.capability") {
		t.Errorf("a place without addresses was not refused: %v", err)
	}
	events, err := b.Events(ctx, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if strings.Contains(e.Data, first.Header.Value.Reveal()) {
			t.Errorf("the header is in the ledger: %s", e.Data)
		}
	}
	if _, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.URL(ctx, s.Receipt, 8080); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("a destroyed sandbox: %v", err)
	}
}
