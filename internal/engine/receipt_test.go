package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestAReceiptIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 4, 22, 18, 600471000, time.UTC)
	const head = "rjtqvyohk36cswgzkbiavaj3oi:acme:598:613f"
	whole := engine.Receipt{Version: 1, ID: "sbx-aaaaaaaaaaaaaaaaaaaa", Account: "acme/web", Name: "one", Extension: "ext.local",
		Host: "host://x", Handle: "{}",
		Generation: 2, CreatedAt: at, ExpiresAt: at.Add(time.Hour), StartedAt: at.Add(time.Second), Prices: "1;unknown",
		Ledger: "rjtqvyohk36cswgzkbiavaj3oi", Head: head,
		Mirror: "/srv/x", PreRelease: []extensions.Step{{Run: "sync"}}, EnvInside: map[string]string{"A": "${B}"}, EnvService: "web"}
	elsewhere, short, none := whole, whole, whole
	elsewhere.Ledger = "another"
	short.Head = "acme:598:613f"
	none.Head, none.StartedAt = "", time.Time{}
	for name, want := range map[string]engine.Receipt{"whole": whole, "a head of another ledger": elsewhere, "a head without a ledger": short,
		"no head": none, "nothing": {}} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got engine.Receipt
		if err := json.Unmarshal(text, &got); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %s\n%s %v", name, text, cmp.Diff(want, got), err)
		}
	}
	var got engine.Receipt
	if err := json.Unmarshal([]byte(`{"v":2,"id":"sbx-aaaaaaaaaaaaaaaaaaaa"}`), &got); !extensions.IsKind(err, extensions.KindInvalid) ||
		got.ID != "" {
		t.Errorf("a newer version is read as %+v, %v", got, err)
	}
}
