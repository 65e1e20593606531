package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// The surviving order is in the ledger before any place is asked.
func TestTheOrderIsRecordedBeforeTheFirstAttempt(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	var recorded engine.Route
	made := -1
	s, err := w.Create(context.Background(), engine.Request{Profile: "profile.two", Name: "one"}, func(engine.Sandbox) {
		made = w.holds(0) + w.holds(1)
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
