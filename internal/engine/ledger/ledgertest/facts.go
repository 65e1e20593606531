package ledgertest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// facts: each place has its own, with their age; they go with their host.
func facts(t *testing.T, address NewAddress) {
	ctx := context.Background()
	l := fresh(t, address)
	must(l.PutHost(ctx, ledger.Host{Account: Account, Name: "one", Ref: "{}"}))(t)
	hour, none := time.Hour, extensions.EgressNone
	compose := ledger.Facts{Account: Account, Extension: "ext.compose", Host: "one", HostRef: "host://one?v=1&d=e30", Config: "c",
		Found: extensions.Facts{Unfit: []string{"Docker is missing"}, Notes: []string{"egress: none"}, Powers: []extensions.Power{},
			Narrowing: extensions.Narrowing{Egress: &none, IsolationLevels: []extensions.Isolation{}}}, ProbedAt: Start}
	plain := ledger.Facts{Account: Account, Extension: "ext.plain", Host: "one", HostRef: compose.HostRef}
	vendor := ledger.Facts{Account: Account, Extension: "ext.vendor", Found: extensions.Facts{Narrowing: extensions.Narrowing{MaxTTL: &hour}}}
	other := ledger.Facts{Account: "acme/other", Extension: "ext.vendor"}
	head := must(l.Head(ctx, "acme"))(t)
	for _, all := range [][]ledger.Facts{{compose, plain}, {vendor}, {other}, nil} {
		if err := l.PutFacts(ctx, all...); err != nil {
			t.Fatal(err)
		}
	}
	if now := must(l.Head(ctx, "acme"))(t); now.Seq != head.Seq+3 {
		t.Fatalf("three probes of several places made %d events", now.Seq-head.Seq)
	}
	is := func(want ledger.Facts) {
		t.Helper()
		if d := cmp.Diff(want, must(l.Facts(ctx, want.Account, want.Extension, want.Host))(t)); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	}
	is(compose)
	is(plain)
	is(vendor)
	is(other)
	verified(t, l)
	mended := compose
	mended.Found, mended.HostRef, mended.ProbedAt = extensions.Facts{}, "host://one?v=1&d=e31", Start.Add(time.Hour)
	head = must(l.Head(ctx, "acme"))(t)
	for range 2 {
		if err := l.PutFacts(ctx, mended, plain); err != nil {
			t.Fatal(err)
		}
	}
	if now := must(l.Head(ctx, "acme"))(t); now.Seq != head.Seq+1 {
		t.Fatalf("one probe, recorded twice, made %d events", now.Seq-head.Seq)
	}
	is(mended)
	is(plain)
	verified(t, l)
	for range 2 {
		if err := l.DeleteHost(ctx, Account, "one"); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []ledger.Facts{compose, plain, {Account: Account, Extension: "ext.vendor", Host: "one"}} {
		if got, err := l.Facts(ctx, f.Account, f.Extension, f.Host); !extensions.IsKind(err, extensions.KindNotFound) {
			t.Fatalf("%s on a host that is gone: %+v, %v", f.Extension, got, err)
		}
	}
	is(vendor)
	verified(t, l)
	for _, f := range []ledger.Facts{{Account: Account}, {Extension: "ext.a"}, {Account: Account, Extension: "ext.a", Host: "a\nb"}} {
		if err := l.PutFacts(ctx, f); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Fatalf("want invalid, got %v", err)
		}
	}
	if err := l.PutFacts(ctx, vendor, other); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Fatalf("two accounts at once: want invalid, got %v", err)
	}
}
