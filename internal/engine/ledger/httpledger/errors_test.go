package httpledger

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestErrorsArriveAsWhatTheyAre(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	ctx := context.Background()
	holder, err := s.Holder(ctx)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(name string, change func(*ledger.Begin)) (ledger.Sandbox, error) {
		id, _ := extensions.NewID(nil)
		b := ledger.Begin{Key: string(id), Holder: holder, ID: id, Account: "acme/web", Name: name}
		if change != nil {
			change(&b)
		}
		return s.Begin(ctx, b)
	}
	first, err := begin("one", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = begin("one", nil)
	var taken *ledger.NameTaken
	if !errors.As(err, &taken) || taken.Existing.ID != first.ID || !extensions.IsKind(err, extensions.KindConflict) || !strings.Contains(extensions.RemedyOf(err), "another name") {
		t.Errorf("%v", err)
	}
	here := err
	id, _ := extensions.NewID(nil)
	_, there := s.base.Begin(ctx, ledger.Begin{Key: string(id), Holder: holder, ID: id, Account: "acme/web", Name: "one"})
	if here.Error() != there.Error() {
		t.Errorf("here  %s\nthere %s", here, there)
	}
	_, err = s.Apply(ctx, ledger.Change{ID: first.ID, Key: "k", Expect: ledger.Expect{Fence: 7}})
	var stale *ledger.Stale
	if !errors.As(err, &stale) || stale.Current.ID != first.ID || stale.Why == "" {
		t.Errorf("%v", err)
	}
	_, err = s.Apply(ctx, ledger.Change{ID: first.ID, Key: "k", Intent: &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: holder}})
	var busy *ledger.Busy
	if !errors.As(err, &busy) || busy.Intent.Holder != holder {
		t.Errorf("%v", err)
	}
	_, err = begin("two", func(b *ledger.Begin) { b.Reserve = &ledger.Reserve{Currency: "USD", Amount: 5, Wallet: true} })
	var short *ledger.Insufficient
	if !errors.As(err, &short) || short.Need != 5 || !extensions.IsKind(err, extensions.KindExhausted) {
		t.Errorf("%v", err)
	}
	_, err = begin("two", func(b *ledger.Begin) {
		b.Ceilings = []ledger.Ceiling{{Source: "me", Scope: "acme/web", Max: 1, Per: time.Hour}}
	})
	var fast *ledger.TooFast
	var e *extensions.Error
	if !errors.As(err, &fast) || fast.Max != 1 || !errors.As(err, &e) || e.RetryAfter <= 0 || !strings.HasSuffix(err.Error(), fast.Error()) {
		t.Errorf("%v", err)
	}
	_, err = s.PutBudget(ctx, ledger.Budget{Account: "acme/web", Name: "b", Currency: "USD", Hard: true})
	if err == nil {
		_, err = begin("two", func(b *ledger.Begin) { b.Reserve = &ledger.Reserve{Unknown: true} })
	}
	var unpriced *ledger.Unpriced
	if !errors.As(err, &unpriced) || unpriced.Limit == "" {
		t.Errorf("%v", err)
	}
	_, err = s.Apply(ctx, ledger.Change{ID: first.ID, Key: "k", Room: []ledger.Room{{Max: 0}}})
	var full *ledger.Full
	if !errors.As(err, &full) {
		t.Errorf("%v", err)
	}
	if _, err := s.Get(ctx, id); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("%v", err)
	}
}
