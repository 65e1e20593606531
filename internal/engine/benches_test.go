package engine_test

import (
	"maps"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
)

// onBoth runs a test with a ledger in a file and with one in PostgreSQL, for an
// org that pays a vendor by the hour: a dollar at ext.mine, three at ext.dear,
// nobody knows what at ext.dim.
func onBoth(t *testing.T, files map[string]string, f func(t *testing.T, b *bench), more ...with) {
	t.Helper()
	priced := map[string]string{
		"extensions/ext.mine.yaml":     bound("ext.mine", "$VENDOR", "priority: 10\ncost: { per_hour: \"1.00 USD\" }\n"),
		"extensions/ext.dear.yaml":     bound("ext.dear", "$DEAR", "cost: { per_hour: \"3.00 USD\" }\n"),
		"extensions/ext.dim.yaml":      bound("ext.dim", t.TempDir(), ""),
		"profiles/profile.mine.yaml":   profile("profile.mine", "extension: ext.mine\n"),
		"profiles/profile.dim.yaml":    profile("profile.dim", "extension: ext.dim\n"),
		"profiles/profile.either.yaml": profile("profile.either", "route: { fallback: [ext.mine, ext.dear] }\n"),
	}
	maps.Copy(priced, files)
	for name, address := range map[string]func(b *bench) string{
		"sqlite": func(b *bench) string { return sqlstore.DefaultURL(b.StateDir) },
		"postgres": func(b *bench) string {
			address := pgtest.New(b.t)
			pgtest.OwnClock(b.t, address) // for later
			return address
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, append([]with{onFiles(priced), func(b *bench) {
				b.profile, b.Lease, b.Ledger = "profile.mine", fleetLease, address(b)
			}}, more...)...)
			f(t, b)
			b.verified()
		})
	}
}

// fleetLease is how long the dead of machines that share a ledger are waited for. A machine as busy as the tests make it must be
// able to say in time that it lives.
const fleetLease = 5 * time.Second

// waking has the lease of tests that wait for the dead.
func waking(b *bench) { b.Lease = fleetLease }

// newFleet is the first of several machines, each with a state folder of its
// own, that share a vendor and a ledger in PostgreSQL.
func newFleet(t *testing.T, binding string, more ...with) *bench {
	t.Helper()
	return newBench(t, append([]with{onLedger(pgtest.New(t)), onFiles(map[string]string{
		"extensions/ext.mine.yaml":   bound("ext.mine", "$VENDOR", binding),
		"profiles/profile.mine.yaml": profile("profile.mine", "extension: ext.mine\n"),
	}), func(b *bench) { b.profile = "profile.mine" }}, more...)...)
}

// offline is a machine with places of its own, and a ledger in PostgreSQL that
// can be cut off.
type offline struct {
	*bench
	cut    *pgtest.Cutter
	direct string // the same database, never cut off
}

func newOffline(t *testing.T) *offline {
	t.Helper()
	direct := pgtest.New(t)
	cut := pgtest.NewCutter(t, direct)
	return &offline{newBench(t, onLedger(cut.Address), func(b *bench) { b.profile, b.Lease = "profile.quickstart", fleetLease }), cut, direct}
}

// newTwo has two vendors of the same kind, the second dearer.
func newTwo(t *testing.T) *bench {
	t.Helper()
	price := func(ext, vcpu string) string {
		return "id: prices." + ext + "\nextension: ext." + ext +
			"\nversion: \"1\"\nas_of: \"2026-08-01\"\nvalid_until: \"2036-11-21\"\nsource: test\n" +
			"currency: USD\nconfidence: exact\nbilling: wall-clock\nidle: zero\ndefaults: { cpu: \"1\", memory_mb: 512 }\n" +
			"components:\n  - { component: vcpu, unit: vcpu-second, price: \"" + vcpu + "\" }\n"
	}
	return newBench(t, onFiles(map[string]string{
		"extensions/ext.first.yaml":  bound("ext.first", "$VENDOR", "title: First\npriority: 10\n"),
		"extensions/ext.second.yaml": bound("ext.second", "$DEAR", "title: Second\n"),
		"prices/prices.first.yaml":   price("first", "0.0001"),
		"prices/prices.second.yaml":  price("second", "0.001"),
		"profiles/profile.two.yaml": "id: profile.two\nversion: \"1.0.0\"\n" +
			"route: { strategy: prefer-self-hosted, fallback: [ext.first, ext.second] }\n" + common,
		"profiles/profile.dearest.yaml": "id: profile.dearest\nversion: \"1.0.0\"\nroute: { strategy: explicit, fallback: [ext.second, ext.first] }\n" + common,
		"profiles/profile.first.yaml":   "id: profile.first\nversion: \"1.0.0\"\nextension: ext.first\n" + common,
		"profiles/profile.second.yaml":  "id: profile.second\nversion: \"1.0.0\"\nextension: ext.second\n" + common,
	}))
}
