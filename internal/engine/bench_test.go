package engine_test

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/docker"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// bench is the one fixture: a process of sandboxer, and all that the next ones
// are opened with. Every other fixture is a bench with something changed.
//
//	newBench(t)                               this machine and the stub vendors, with testdata's catalog
//	newBench(t, onFiles(files), onLedger(a))  with more of a catalog, and another ledger
//	onBoth(t, files, func(t, b) {…})          a vendor with prices, with a ledger in a file and in PostgreSQL
//	newFleet(t, "")                           machines that share a vendor and a ledger in PostgreSQL
//	newOffline(t)                             a machine whose ledger in PostgreSQL can be cut off
//	newTwo(t)                                 two vendors, the second dearer
//	newHosts(t, files)                        hosts that can be down, full or narrow
//
// b itself is the first process, b.reopen(…) another one on the same machine,
// b.machine(…) one on another machine, b.run(order{…}) one that can be killed.
// The ledger is looked at by b.book(), the vendors by b.alive(), all places by
// b.left(). A hooked extension is the stub vendor with some calls replaced.
// Nothing is left behind, whatever a test does.
type bench struct {
	t              testing.TB
	*engine.Engine        // the first process
	engine.Options        // of the next one
	profile        string // of a request that names none
	vendor, dear   string // folders of vendors: of ext.saas-stub, and of another one
	catalog        string // folder of what onFiles added
	opened         *ledger.Ledger
	account        string          // in this machine's Docker, where that is a place; else ""
	rented         func() []string // the ids of what lives at a vendor; nil = no vendor is a place
}

// with changes what a bench is opened with.
type with func(b *bench)

// onFiles adds files of a catalog to testdata's. $VENDOR and $DEAR in them are
// the folders of the two vendors.
func onFiles(files map[string]string) with {
	return func(b *bench) {
		filled := map[string]string{}
		for name, text := range files {
			filled[name] = strings.NewReplacer("$VENDOR", b.vendor, "$DEAR", b.dear).Replace(text)
		}
		b.catalog = folder(b.t, filled)
		b.Catalog = append(b.Catalog[:len(b.Catalog):len(b.Catalog)], b.catalog)
	}
}

// onLedger keeps records at an address.
func onLedger(address string) with { return func(b *bench) { b.Ledger = address } }

// onMachine works in another state folder, whose sandboxes end with the test.
func onMachine(dir string) with {
	return func(b *bench) {
		b.StateDir = dir
		exttest.Guard(b.t, dir)
		here := *b
		b.t.Cleanup(here.removeAll)
	}
}

// as works for another account.
func as(account string) with { return func(b *bench) { b.Account = account } }

// ahead has a clock that is off by so much.
func ahead(off func() time.Duration) with {
	return func(b *bench) { b.Now = func() time.Time { return time.Now().Add(off()) } }
}

// having adds an extension.
func having(x extensions.Extension) with {
	return func(b *bench) { b.Extensions = append(all(), x) }
}

func all() []extensions.Extension {
	return []extensions.Extension{local.New(), saasstub.New(), saasstub.NewEventual()}
}

// real are the extensions that a driver of b has.
func (b *bench) real() []extensions.Extension {
	if b.account == "" {
		return all()
	}
	return append(all(), docker.New())
}

func newBench(t testing.TB, more ...with) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{t: t, profile: "profile.stub", vendor: filepath.Join(dir, "saas-stub"), dear: filepath.Join(dir, "dear"),
		Options: engine.Options{Extensions: all(), Account: "acme/web", Catalog: []string{"testdata/catalog"}}}
	for _, w := range append([]with{onMachine(dir)}, more...) {
		w(b)
	}
	b.Engine = b.reopen()
	return b
}

// removeAll ends what runs on this machine and at the vendor beside it.
func (b *bench) removeAll() {
	ctx := context.Background()
	b.script()
	b.places(func(be extensions.Backend, o extensions.Observation) {
		if _, err := be.Teardown(ctx, o.Handle); err != nil {
			b.t.Error(err)
		}
	})
}

// places goes through all that this machine and its vendors hold, whatever the
// ledger says.
func (b *bench) places(each func(be extensions.Backend, o extensions.Observation)) {
	ctx := context.Background()
	for _, x := range b.real() {
		be, err := x.Open(ctx, extensions.Config{Binding: "check", Account: cmp.Or(b.account, "acme/web"), StateDir: b.StateDir})
		if err != nil {
			b.t.Error(err)
			continue
		}
		obs, err := be.Status(ctx, nil)
		if err != nil {
			b.t.Error(err)
		}
		for _, o := range obs {
			each(be, o)
		}
		_ = be.Close()
	}
}

// reopen is another process, like the first one but for what is said.
func (b *bench) reopen(more ...with) *engine.Engine {
	b.t.Helper()
	next := *b
	for _, w := range more {
		w(&next)
	}
	e, err := engine.New(next.Options)
	if err != nil {
		b.t.Fatal(told(err))
	}
	b.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.t.Errorf("close: %v", err)
		}
	})
	return e
}

// machine is a process on another machine.
func (b *bench) machine(more ...with) *engine.Engine {
	b.t.Helper()
	return b.reopen(append([]with{onMachine(b.t.TempDir())}, more...)...)
}

// elsewhere is a process with a ledger of its own.
func (b *bench) elsewhere(more ...with) *engine.Engine {
	b.t.Helper()
	return b.reopen(append([]with{onLedger("sqlite://" + b.t.TempDir() + "/elsewhere.db")}, more...)...)
}

// book is the ledger, opened beside the engines.
func (b *bench) book() *ledger.Ledger {
	b.t.Helper()
	if b.opened != nil {
		return b.opened
	}
	address := b.Ledger
	if address == "" {
		address = sqlstore.DefaultURL(b.StateDir)
	}
	l, err := sqlstore.Open(context.Background(), address, sqlstore.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := l.Close(); err != nil {
			b.t.Error(err)
		}
	})
	b.opened = l
	return l
}

// sound demands a consistent ledger, with events if anything was begun.
func (b *bench) sound(begun bool) {
	b.t.Helper()
	if n, findings, err := verifyLedger(context.Background(), b.reopen()); err != nil || len(findings) > 0 || n == 0 && begun {
		b.t.Errorf("ledger: %d events, %q, %v", n, findings, err)
	}
}

func (b *bench) clean() {
	b.t.Helper()
	b.sound(false)
}

// verifyLedger is Verify with pinned heads alone.
func verifyLedger(ctx context.Context, e *engine.Engine, heads ...string) (events int64, findings []string, err error) {
	v, err := e.Verify(ctx, engine.Evidence{Pins: heads})
	return v.Events, v.Findings, err
}

// startsSandboxes is for a test that starts some on this machine.
func startsSandboxes(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts no sandboxes")
	}
}

func (b *bench) create(req engine.Request) engine.Sandbox {
	b.t.Helper()
	return b.make(b.Engine, req)
}

// make is create by another process.
func (b *bench) make(e *engine.Engine, req engine.Request) engine.Sandbox {
	b.t.Helper()
	if req.Profile == "" {
		req.Profile = b.profile
	}
	if req.Profile == "profile.quickstart" || req.Profile == "profile.mirror-local" {
		startsSandboxes(b.t)
	}
	s, err := e.Create(context.Background(), req, nil, nil)
	if err != nil {
		b.t.Fatalf("create: %s", told(err))
	}
	return s
}

// end ends sandboxes.
func (b *bench) end(all ...engine.Sandbox) {
	b.t.Helper()
	for _, s := range all {
		if _, err := b.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil {
			b.t.Errorf("destroy: %s", told(err))
		}
	}
}

// script makes the vendor do as the rules say.
func (b *bench) script(rules ...saasstub.Rule) { b.does(b.vendor, rules...) }

// does is script for the vendor in a folder.
func (b *bench) does(dir string, rules ...saasstub.Rule) {
	b.t.Helper()
	if err := saasstub.WriteScript(dir, saasstub.Script{Rules: rules}); err != nil {
		b.t.Fatal(err)
	}
}

// alive is what the vendors made and still hold, by name.
func (b *bench) alive() []string {
	b.t.Helper()
	return append(b.holds(b.vendor), b.holds(b.dear)...)
}

func (b *bench) holds(dir string) (names []string) {
	b.t.Helper()
	objs, err := vendor.At(dir).Objects()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, o := range objs {
		names = append(names, o.Name)
	}
	return names
}

// left is what all places hold and nobody has ended.
func (b *bench) left() (ids []string) {
	b.t.Helper()
	b.places(func(_ extensions.Backend, o extensions.Observation) {
		if o.Phase != extensions.PhaseAbsent && o.Phase != extensions.PhaseExpired {
			ids = append(ids, string(o.ID))
		}
	})
	if b.rented != nil {
		ids = append(ids, b.rented()...)
	}
	return ids
}

// observations are what all places say of what they hold.
func (b *bench) observations() (out []extensions.Observation) {
	b.t.Helper()
	b.places(func(_ extensions.Backend, o extensions.Observation) { out = append(out, o) })
	return out
}

// What profiles and bindings of the tests have in common.
const (
	contained = "isolation: { level: container }\nnetwork: { default: deny }\nworkspace: { mode: remote-canonical, access: rw }\n" +
		"ttl: { default: 1h, max: 24h }\n"
	common = contained + "resources: { cpu: 1, memory_mb: 512 }\n"
	open   = "isolation: { level: process }\nnetwork: { default: allow }\nttl: { default: 1h, max: 24h }\n" // of a place of one's own
)

// profile is the text of one that runs at a vendor.
func profile(id, rest string) string {
	return "id: " + id + "\nversion: \"1.0.0\"\n" + contained + rest
}

// bound is the text of a binding of the stub vendor in a folder.
func bound(id, dir, rest string) string {
	return "id: " + id + "\nhandler: saas-stub\nconfig: { dir: \"" + dir + "\" }\n" + rest
}
