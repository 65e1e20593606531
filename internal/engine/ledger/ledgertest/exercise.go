package ledgertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// NewAddress makes room for one empty ledger that lives as long as the test,
// and returns the address to open it by.
type NewAddress func(t testing.TB) string

// Exercise runs the suite: the groups of the given names, or all of it. The test
// binary's TestMain must call Main.
func Exercise(t *testing.T, address NewAddress, only ...string) {
	t.Helper()
	for _, group := range []struct {
		name string
		run  func(*testing.T, NewAddress)
	}{
		{"Life", life},
		{"Names", namesAreUnique},
		{"LongTexts", longTexts},
		{"CompareAndSet", compareAndSet},
		{"Intents", intents},
		{"Meters", meters},
		{"Hosts", hosts},
		{"Snapshots", snapshots},
		{"Events", events},
		{"Outbox", outbox},
		{"Invariants", invariants},
		{"Funds", funds},
		{"Usage", usage},
		{"Failpoints", failpoints},
		{"Processes", processes},
	} {
		if len(only) > 0 && !slices.Contains(only, group.name) {
			continue
		}
		t.Run(group.name, func(t *testing.T) { t.Parallel(); group.run(t, address) })
	}
}

// Race runs what processes compete for. It is for a ledger whose transactions
// are those of another process, where what the suite injects does not reach.
func Race(t *testing.T, address NewAddress) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, NewAddress){
		"sixteen open a new ledger at once":     coldStart,
		"several compete for the same names":    compete,
		"killed at any time":                    killedAtRandom,
		"the last credit of a wallet":           func(t *testing.T, a NewAddress) { lastCredit(t, a, "wallet of acme") },
		"the last credit of a budget":           func(t *testing.T, a NewAddress) { lastCredit(t, a, "budget all of acme/web") },
		"a holder lives as long as its process": intents,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); run(t, address) })
	}
}

// testLease is short: many tests wait for a dead holder to be taken for dead.
const testLease = 3 * time.Second

func withLease(o ledger.Options) ledger.Options {
	if o.Lease == 0 {
		o.Lease = testLease
	}
	if o.Charges == nil {
		o.Charges = bills.Of
	}
	return o
}

// open opens the address for the length of the test.
func open(t testing.TB, address string, o ledger.Options) ledger.Ledger {
	t.Helper()
	l := must(ledger.Open(context.Background(), address, withLease(o)))(t)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("closing the ledger: %v", err)
		}
	})
	return l
}

// fresh is a new ledger of this test.
func fresh(t testing.TB, address NewAddress) ledger.Ledger {
	t.Helper()
	return open(t, address(t), ledger.Options{Lease: testLease})
}
