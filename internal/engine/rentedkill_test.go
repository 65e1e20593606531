package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/e2btest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel"
)

// hurried is a vendor whose look-ups are trusted sooner: its fake lists what is new at once.
type hurried struct {
	extensions.Extension
	extensions.Declarer
	extensions.SpecChecker
}

func (x hurried) Describe() extensions.Descriptor {
	d := x.Extension.Describe()
	for _, find := range []*extensions.Find{&d.Find, &d.Snapshots.Find} {
		find.Settle = min(find.Settle, time.Second)
	}
	return d
}

// Identity implements extensions.Identifier, as far as the vendor does.
func (x hurried) Identity(cfg extensions.Config) string {
	if i, ok := x.Extension.(extensions.Identifier); ok {
		return i.Identity(cfg)
	}
	return ""
}

// logins are the credentials of accounts at vendors, by binding.
type logins map[string]map[string]string

// vendors are the extensions of all that can be rented.
func vendors() []extensions.Extension {
	all := []extensions.Extension{daytona.New(), e2b.New(), modal.New(), openshell.New(), vercel.New()}
	for i, x := range all {
		all[i] = hurried{x, x.(extensions.Declarer), x.(extensions.SpecChecker)}
	}
	return all
}

// rent adds the vendors with the credentials of accounts.
func rent(o *engine.Options, all logins) {
	o.Extensions = append(o.Extensions[:len(o.Extensions):len(o.Extensions)], vendors()...)
	o.Credentials = map[string]map[string]engine.Secret{}
	for binding, login := range all {
		o.Credentials[binding] = map[string]engine.Secret{}
		for name, value := range login {
			o.Credentials[binding][name] = extensions.NewSecret(value)
		}
	}
}

// renting is a bench whose profile.rented runs at a fake of E2B of its own.
type renting struct {
	*bench
	v      *e2btest.Vendor
	killer *e2btest.Killer
	logins logins
}

func newRented(t *testing.T) renting {
	t.Helper()
	v := e2btest.Start(t)
	k := v.Killer(t)
	login := logins{"ext.rented": {"api_key": v.Key}}
	b := newBench(t, func(b *bench) { rent(&b.Options, login) }, onFiles(map[string]string{
		"extensions/ext.rented.yaml": fmt.Sprintf("id: ext.rented\nhandler: e2b\nconfig: { plan: pro, api_url: %q, sandbox_url: %q }\n",
			k.APIURL, k.SandboxURL),
		"prices/mine.yaml":     prices("ext.rented", "  - { component: sandbox, unit: sandbox-hour, price: \"1\" }\n"),
		"profiles/rented.yaml": "id: profile.rented\nversion: \"1.0.0\"\nextension: ext.rented\nimage: { pull: \"alpine:3.20\" }\n" + contained,
		"profiles/other.yaml":  "id: profile.other\nversion: \"1.0.0\"\nextends: profile.rented\nimage: { pull: \"alpine:3.21\" }\n",
	}))
	return renting{b, v, k, login}
}

// victim carries out an order in a process that is killed at its nth request, or never.
func (r renting) victim(o order, n int64, after bool) (requests int64) {
	r.t.Helper()
	o.Profile, o.Logins = "profile.rented", r.logins
	cmd := r.driver(o)
	var said strings.Builder
	cmd.Stderr = &said
	if err := r.killer.Start(cmd, n, after); err != nil {
		r.t.Fatal(err)
	}
	if err := r.killer.Wait(); (err != nil) != (n > 0) {
		r.t.Fatalf("killed at request %d: %v: %s", n, err, said.String())
	}
	return r.killer.Seen()
}

// recovered is the only sandbox after another run has made it.
func (r renting) recovered() engine.Receipt {
	r.t.Helper()
	ctx := context.Background()
	create := func(more ...with) (engine.Sandbox, error) {
		e := r.reopen(more...)
		defer e.Close() // as a run that ends does
		return e.Create(ctx, engine.Request{Profile: "profile.rented", Name: "one"}, nil, nil)
	}
	s, err := create()
	if extensions.IsKind(err, extensions.KindIndeterminate) { // the name is held as long as its first deadline lasts
		r.v.Clock().Advance(afterTheClaim)
		s, err = create(ahead(func() time.Duration { return afterTheClaim }))
	}
	if err != nil && strings.Contains(extensions.RemedyOf(err)+err.Error(), "import {") { // it was whole, and nobody was told
		s, err = r.reopen().Lookup(ctx, "", "", "one")
	}
	if err != nil {
		r.t.Fatalf("the next run: %s", told(err))
	}
	there := r.v.Sandboxes()
	if len(there) != 1 || there[0].Metadata[extensions.LabelID] != string(s.ID) {
		r.t.Fatalf("the vendor has %+v, want %s alone", there, s.ID)
	}
	return s.Receipt
}

// swept lets a day pass and another image be built, which removes the template that a killed destroy did not reach.
func (r renting) swept() {
	r.t.Helper()
	if len(r.v.Templates()) == 0 {
		return
	}
	r.v.AgeTemplates(25 * time.Hour)
	e := r.reopen()
	defer e.Close()
	r.destroy(r.make(e, engine.Request{Profile: "profile.other", Name: "two"}).Receipt)
}

// settled demands that nothing is left, and that the ledger says so to the last meter.
func (r renting) settled() {
	r.t.Helper()
	if there := r.v.Sandboxes(); len(there) > 0 {
		r.t.Errorf("the vendor has %+v", there)
	}
	if left := r.v.Templates(); len(left) > 0 {
		r.t.Errorf("the vendor has the templates %v", left)
	}
	r.closed()
}

// closed demands that the ledger has no live sandbox, that every meter ended, and that it is sound.
func (b *bench) closed() {
	b.t.Helper()
	rows, err := b.book().List(context.Background(), ledger.Filter{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, row := range rows {
		if row.State != lifecycle.Destroyed {
			b.t.Errorf("%s is %s", row.ID, row.State)
		}
		for _, m := range b.meters(row.ID) {
			if m.Open() || m.ClosedAt.Before(m.OpenedAt) {
				b.t.Errorf("meter %s runs from %s to %s", m.ID, m.OpenedAt, m.ClosedAt)
			}
		}
	}
	b.clean()
}

func (r renting) destroy(rec engine.Receipt) {
	r.t.Helper()
	if _, err := r.reopen().Destroy(context.Background(), rec, engine.DestroyOptions{}); err != nil {
		r.t.Fatalf("destroy: %s", told(err))
	}
}

func TestAKillAtAnyRequestToAVendorConverges(t *testing.T) {
	t.Parallel()
	killing(t)
	r := newRented(t)
	creates := r.victim(order{Do: "create", Name: "one"}, 0, false)
	ends := r.victim(order{Do: "destroy", Receipt: r.recovered()}, 0, false)
	r.settled()
	if creates < 12 || ends < 4 {
		t.Fatalf("a create makes %d requests, a destroy %d", creates, ends)
	}
	for _, after := range []bool{false, true} {
		for n := int64(1); n <= creates; n++ {
			t.Run(fmt.Sprintf("create, request %d, done %t", n, after), func(t *testing.T) {
				t.Parallel()
				r := newRented(t)
				r.victim(order{Do: "create", Name: "one"}, n, after)
				r.destroy(r.recovered())
				r.settled()
			})
		}
		for n := int64(1); n <= ends; n++ {
			t.Run(fmt.Sprintf("destroy, request %d, done %t", n, after), func(t *testing.T) {
				t.Parallel()
				r := newRented(t)
				rec := r.recovered()
				r.victim(order{Do: "destroy", Receipt: rec}, n, after)
				r.destroy(rec)
				r.swept()
				r.settled()
			})
		}
	}
}
