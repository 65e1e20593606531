package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// The surviving order is in the ledger before any place is asked.
func TestTheOrderIsRecordedBeforeTheFirstAttempt(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	var recorded engine.Route
	made := -1
	s, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, func(engine.Sandbox) {
		made = len(w.holds(w.vendor)) + len(w.holds(w.dear))
		if rows := w.rows(); len(rows) != 1 || json.Unmarshal(rows[0].Route, &recorded) != nil {
			t.Errorf("%+v", rows)
		}
	}, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	if made != 0 || !slices.Equal(recorded.Order, []string{"ext.first", "ext.second"}) || len(recorded.Attempts) != 0 {
		t.Errorf("with %d made: %+v", made, recorded)
	}
	if _, err := w.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(err)
	}
	w.clean()
}

// What a place answered is in the ledger before the next one is asked: a
// process that dies there has told why.
func TestAFailedAttemptIsRecordedBeforeTheNext(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.script(saasstub.Rule{Op: vendor.OpCreate, Do: vendor.DoQuota})
	placed := 0
	var recorded engine.Route
	ctx := failpointtest.Inject(context.Background(), "engine.create.placed", func() error {
		if placed++; placed == 2 {
			if rows := w.rows(); len(rows) != 1 || json.Unmarshal(rows[0].Route, &recorded) != nil {
				t.Errorf("%+v", rows)
			}
		}
		return nil
	})
	s, err := w.Create(ctx, engine.Request{Profile: "profile.two", Name: "one"}, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	if a := recorded.Attempts; placed != 2 || len(a) != 1 || a[0].Candidate != "ext.first" ||
		a[0].Outcome != string(extensions.KindExhausted) || a[0].Reason == "" {
		t.Errorf("%d placed: %+v", placed, recorded)
	}
	if _, err := w.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(err)
	}
	w.clean()
}
