package ledger_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	l, err := ledger.Open(ctx, ledger.DefaultURL(filepath.Join(t.TempDir(), "a b?c#%")), ledger.Options{})
	if err != nil {
		t.Fatal(err, extensions.RemedyOf(err))
	}
	defer l.Close()
	h, err := l.Holder(ctx)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := extensions.NewID(nil)
	s, err := l.Begin(ctx, ledger.Begin{Key: "k1", Holder: h, ID: id, Account: "acme/web", Name: "n", Request: json.RawMessage(`{"b":1,"a":2}`)})
	if err != nil {
		t.Fatal(err)
	}
	s, err = l.Apply(ctx, ledger.Change{ID: id, Key: "k2", To: lifecycle.Provisioning})
	if err != nil {
		t.Fatal(err)
	}
	s, err = l.Apply(ctx, ledger.Change{ID: id, Key: "k3", To: lifecycle.Ready, Finish: &ledger.FinishIntent{Outcome: ledger.Confirmed}, Meter: ledger.MeterOps{Open: &ledger.MeterOpen{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", s)
	evs, err := l.Events(ctx, "acme", 1, 0)
	if err != nil || len(evs) != 3 {
		t.Fatal(err)
	}
	t.Logf("%s", evs[2].CloudEvent)
}
