package sqlstore_test

import (
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
)

func TestTheServersClockIsToldAndNoOther(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	pgtest.OwnClock(t, address)
	told := func(address string, readOnly bool) time.Time {
		t.Helper()
		l, err := sqlstore.Open(ctx, address, sqlstore.Options{ReadOnly: readOnly, Now: func() time.Time { return time.Unix(0, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		at, err := l.ServerTime(ctx)
		if err != nil {
			t.Error(err)
		}
		return at
	}
	if at := told(address, true); !at.IsZero() {
		t.Errorf("without tables: %s", at)
	}
	for _, ahead := range []time.Duration{0, 30 * time.Hour} {
		pgtest.Advance(t, address, ahead)
		for _, readOnly := range []bool{false, true} {
			if at := told(address, readOnly); time.Until(at.Add(-ahead)).Abs() > time.Minute {
				t.Errorf("%s ahead, read only %t: %s", ahead, readOnly, at)
			}
		}
	}
	if at := told(newFile(t), false); !at.IsZero() {
		t.Errorf("of a file: %s", at)
	}
}
