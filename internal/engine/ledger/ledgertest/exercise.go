package ledgertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// NewAddress prepares an empty ledger that lives as long as the test, and returns its address.
type NewAddress func(t testing.TB) string

// Exercise runs the suite: the named groups, or all. The test binary's TestMain must call Main.
func Exercise(t *testing.T, address NewAddress, only ...string) {
	t.Helper()
	for _, group := range []struct {
		name  string
		run   func(*testing.T, NewAddress)
		alone bool
	}{
		{"Life", life, false},
		{"Names", namesAreUnique, false},
		{"LongTexts", longTexts, false},
		{"CompareAndSet", compareAndSet, false},
		{"Intents", intents, false},
		{"Meters", meters, false},
		{"Hosts", hosts, false},
		{"Facts", facts, false},
		{"Leases", leases, false},
		{"Snapshots", snapshots, false},
		{"Kept", kept, false},
		{"Events", events, false},
		{"Outbox", outbox, false},
		{"Invariants", invariants, true},
		{"Funds", funds, false},
		{"Usage", usage, true},
		{"Failpoints", failpoints, true},
		{"Processes", processes, true},
	} {
		if len(only) > 0 && !slices.Contains(only, group.name) {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			if group.alone {
				exttest.Alone(t)
			}
			t.Parallel()
			group.run(t, address)
		})
	}
}

// testLease is short: many tests wait until a dead holder counts as dead.
const testLease = 3 * time.Second

func withLease(o sqlstore.Options) sqlstore.Options {
	if o.Lease == 0 {
		o.Lease = testLease
	}
	if o.Charges == nil {
		o.Charges = bills.Of
	}
	return o
}

// open opens the address until the test ends.
func open(t testing.TB, address string, o sqlstore.Options) *ledger.Ledger {
	t.Helper()
	l := must(sqlstore.Open(context.Background(), address, withLease(o)))(t)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("closing the ledger: %v", err)
		}
	})
	return l
}

// fresh returns a new ledger of this test.
func fresh(t testing.TB, address NewAddress) *ledger.Ledger {
	t.Helper()
	return open(t, address(t), sqlstore.Options{Lease: testLease})
}
