package tenant_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// foreign is what another account has.
type foreign struct {
	account string
	box     ledger.Sandbox
	snap    ledger.Snapshot
	budget  ledger.Budget
}

func settle(h *house, account string) foreign {
	h.t.Helper()
	v := h.view(account)
	f := foreign{account: account, box: h.at(v, account, own)}
	id, err := extensions.NewSnapshotID(nil)
	if err == nil {
		f.snap, err = v.BeginSnapshot(ctx, ledger.BeginSnapshot{Key: id, Holder: holder(account), ID: id, Account: account, SandboxID: f.box.ID})
	}
	if err == nil {
		_, err = v.PutHost(ctx, ledger.Host{Account: account, Name: "box", Ref: "{}"})
	}
	if err == nil {
		f.budget, err = h.base.PutBudget(ctx, ledger.Budget{Account: account, Name: "all", Currency: "USD", Limit: 1 << 50})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return f
}

var errLeak = errors.New("it is told")

func unless(leaks bool, err error) error {
	if leaks {
		return errLeak
	}
	return err
}

// denied is nil where the view tells and changes nothing of what another
// account has; by method, and every method has to be here.
var denied = map[string]func(v ledger.Ledger, f foreign) error{
	"Get": func(v ledger.Ledger, f foreign) error {
		_, err := v.Get(ctx, f.box.ID)
		return want(err, extensions.KindNotFound)
	},
	"ByName": func(v ledger.Ledger, f foreign) error {
		_, err := v.ByName(ctx, f.account, f.box.Name)
		return want(err, extensions.KindNotFound)
	},
	"List": func(v ledger.Ledger, f foreign) error {
		return errors.Join(none(v.List(ctx, ledger.Filter{})), none(v.List(ctx, ledger.Filter{Account: f.account})))
	},
	"Occupancy": func(v ledger.Ledger, f foreign) error {
		return errors.Join(none(v.Occupancy(ctx, f.account)), none(v.Occupancy(ctx, "")))
	},
	"ReadyTimes": func(v ledger.Ledger, f foreign) error { return none(v.ReadyTimes(ctx, f.account, own, "", 9)) },
	"Lifetimes":  func(v ledger.Ledger, f foreign) error { return none(v.Lifetimes(ctx, f.account, "", "", 9)) },
	"OpenIntents": func(v ledger.Ledger, f foreign) error {
		return errors.Join(none(v.OpenIntents(ctx, ledger.IntentFilter{})), none(v.OpenIntents(ctx, ledger.IntentFilter{Account: f.account})),
			none(v.OpenIntents(ctx, ledger.IntentFilter{Holder: holder(f.account)})))
	},
	"Intent": func(v ledger.Ledger, f foreign) error {
		_, err := v.Intent(ctx, string(f.box.ID)+"/create")
		return want(err, extensions.KindNotFound)
	},
	"Host": func(v ledger.Ledger, f foreign) error {
		_, err := v.Host(ctx, f.account, "box")
		return want(err, extensions.KindNotFound)
	},
	"Hosts": func(v ledger.Ledger, f foreign) error {
		return errors.Join(none(v.Hosts(ctx, "")), none(v.Hosts(ctx, f.account)))
	},
	"PutHost": func(v ledger.Ledger, f foreign) error {
		_, err := v.PutHost(ctx, ledger.Host{Account: f.account, Name: "new", Ref: "{}"})
		return want(err, extensions.KindUnauthorized)
	},
	"DeleteHost": func(v ledger.Ledger, f foreign) error {
		return want(v.DeleteHost(ctx, f.account, "box"), extensions.KindUnauthorized)
	},
	"GetSnapshot": func(v ledger.Ledger, f foreign) error {
		_, err := v.GetSnapshot(ctx, f.snap.ID)
		return want(err, extensions.KindNotFound)
	},
	"Snapshots": func(v ledger.Ledger, f foreign) error {
		return errors.Join(none(v.Snapshots(ctx, ledger.SnapshotFilter{})), none(v.Snapshots(ctx, ledger.SnapshotFilter{Account: f.account})))
	},
	"BeginSnapshot": func(v ledger.Ledger, f foreign) error {
		id, _ := extensions.NewSnapshotID(nil)
		_, err := v.BeginSnapshot(ctx, ledger.BeginSnapshot{Key: id, Holder: holder("acme/web"), ID: id, Account: "acme/web", SandboxID: f.box.ID})
		_, other := v.BeginSnapshot(ctx, ledger.BeginSnapshot{Key: id, Holder: holder("acme/web"), ID: id, Account: f.account, SandboxID: f.box.ID})
		return errors.Join(want(err, extensions.KindNotFound), want(other, extensions.KindUnauthorized))
	},
	"ApplySnapshot": func(v ledger.Ledger, f foreign) error {
		_, err := v.ApplySnapshot(ctx, ledger.SnapshotChange{ID: f.snap.ID, Key: f.snap.ID + "/mine", To: ledger.SnapshotDeleted, Finish: &ledger.FinishIntent{Outcome: ledger.Failed}})
		return want(err, extensions.KindNotFound)
	},
	"Meters":  func(v ledger.Ledger, f foreign) error { return none(v.Meters(ctx, f.box.ID)) },
	"Charges": func(v ledger.Ledger, f foreign) error { return none(v.Charges(ctx, f.box.ID)) },
	"Held":    func(v ledger.Ledger, f foreign) error { return none(v.Held(ctx, f.box.ID)) },
	"Usage": func(v ledger.Ledger, f foreign) error {
		return errors.Join(none(v.Usage(ctx, ledger.UsageFilter{})), none(v.Usage(ctx, ledger.UsageFilter{Account: f.account, SandboxID: f.box.ID})))
	},
	"EachCharge": func(v ledger.Ledger, f foreign) error {
		told := func(ledger.ChargeRow) error { return errLeak }
		return errors.Join(v.EachCharge(ctx, ledger.UsageFilter{}, told), v.EachCharge(ctx, ledger.UsageFilter{Account: f.account}, told))
	},
	"EachOpenMeter": func(v ledger.Ledger, f foreign) error {
		told := func(ledger.Meter) error { return errLeak }
		return errors.Join(v.EachOpenMeter(ctx, ledger.UsageFilter{}, told), v.EachOpenMeter(ctx, ledger.UsageFilter{Account: f.account}, told))
	},
	// Content by its own hash: who has the hash has the content.
	"Quote": func(v ledger.Ledger, _ foreign) error {
		_, err := v.Quote(ctx, strings.Repeat("0", 64))
		return want(err, extensions.KindNotFound)
	},
	"Balances": func(v ledger.Ledger, f foreign) error {
		if ledger.StreamOf(f.account) == "acme" {
			return nil // the org's wallet is that of its workspaces
		}
		return none(v.Balances(ctx, ledger.StreamOf(f.account)))
	},
	"Paces": func(v ledger.Ledger, f foreign) error {
		_, theirs := v.Paces(ctx, ledger.PaceQuery{Account: f.account})
		_, counted := v.Paces(ctx, ledger.PaceQuery{Account: "acme/web", Ceilings: []ledger.Ceiling{{Source: "me", Scope: f.account, Max: 1, Per: 1}}})
		return errors.Join(want(theirs, extensions.KindUnauthorized), want(counted, extensions.KindUnauthorized))
	},
	"Budgets": func(v ledger.Ledger, f foreign) error {
		bs, err := v.Budgets(ctx, ledger.StreamOf(f.account))
		for _, b := range bs {
			err = errors.Join(err, unless(b.ID == f.budget.ID, nil))
		}
		return err
	},
	"Events": func(v ledger.Ledger, f foreign) error {
		es, err := v.Events(ctx, ledger.StreamOf(f.account), 1, 0)
		for _, e := range es {
			err = errors.Join(err, unless(strings.Contains(string(e.CloudEvent), f.account) || strings.Contains(string(e.CloudEvent), string(f.box.ID)), nil))
		}
		return err
	},
	"Head": func(v ledger.Ledger, f foreign) error {
		h, err := v.Head(ctx, ledger.StreamOf(f.account))
		return unless(ledger.StreamOf(f.account) != "acme" && h.Seq != 0, err)
	},
	"Verify": func(v ledger.Ledger, f foreign) error {
		r, err := v.Verify(ctx)
		for _, h := range r.Heads {
			err = errors.Join(err, unless(h.Stream != "acme", nil))
		}
		return unless(r.Sandboxes != 0, err)
	},
	"HolderAlive": func(v ledger.Ledger, f foreign) error {
		_, err := v.HolderAlive(ctx, holder(f.account))
		return want(err, extensions.KindNotFound)
	},
	"Begin": func(v ledger.Ledger, f foreign) error {
		b := ledger.Begin{Key: string(f.box.ID), Holder: holder("acme/web"), ID: f.box.ID, Account: f.account, Name: "n"}
		_, account := v.Begin(ctx, b)
		b.Account, b.Holder = "acme/web", holder(f.account)
		_, theirs := v.Begin(ctx, b)
		b.Holder, b.Key = holder("acme/web"), string(f.box.ID)+"/create" // as they did
		s, key := v.Begin(ctx, b)
		b.ID, _ = extensions.NewID(nil)
		other, fresh := v.Begin(ctx, b)
		b.Key, b.Ceilings = string(b.ID)+"/k2", []ledger.Ceiling{{Source: "me", Scope: "rival", Max: 0, Per: 1}}
		if f.account == "acme/other" {
			b.Ceilings[0].Scope = f.account
		}
		_, count := v.Begin(ctx, b)
		return errors.Join(want(account, extensions.KindUnauthorized), want(theirs, extensions.KindUnauthorized), unless(key == nil && s.Account != "acme/web", nil),
			unless(other.ID != "", nil), want(fresh, extensions.KindInvalid), want(count, extensions.KindUnauthorized))
	},
	"Apply": func(v ledger.Ledger, f foreign) error {
		_, err := v.Apply(ctx, ledger.Change{ID: f.box.ID, Key: string(f.box.ID) + "/mine", To: lifecycle.Destroying, Intent: &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: holder("acme/web")}})
		_, theirs := v.Apply(ctx, ledger.Change{ID: f.box.ID, Key: string(f.box.ID) + "/mine", Intent: &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: holder(f.account)}})
		_, again := v.Apply(ctx, ledger.Change{ID: f.box.ID, Key: string(f.box.ID) + "/place"})
		return errors.Join(want(err, extensions.KindNotFound), want(theirs, extensions.KindUnauthorized), want(again, extensions.KindNotFound))
	},
	"Replay": func(v ledger.Ledger, f foreign) error {
		_, err := v.Replay(ctx, nil, ledger.Change{ID: f.box.ID, Key: string(f.box.ID) + "/mine", To: lifecycle.Destroying})
		_, begin := v.Replay(ctx, &ledger.Begin{Key: string(f.box.ID), Holder: holder("acme/web"), ID: f.box.ID, Account: f.account, Name: "n"})
		return errors.Join(want(err, extensions.KindNotFound), want(begin, extensions.KindUnauthorized))
	},
	"Grant": func(v ledger.Ledger, f foreign) error {
		_, err := v.Grant(ctx, ledger.Grant{Key: "k", Org: "acme", Currency: "USD", Amount: 1})
		return want(err, extensions.KindUnauthorized)
	},
	"PutBudget": func(v ledger.Ledger, f foreign) error {
		_, err := v.PutBudget(ctx, ledger.Budget{Account: "acme/web", Name: "n", Currency: "USD", Limit: 1})
		return want(err, extensions.KindUnauthorized)
	},
	"Outbox": func(v ledger.Ledger, f foreign) error {
		_, err := v.Outbox(ctx, "hub", "acme")
		return want(err, extensions.KindUnauthorized)
	},
	"MoveOutbox": func(v ledger.Ledger, f foreign) error {
		_, err := v.MoveOutbox(ctx, ledger.OutboxStep{})
		return want(err, extensions.KindUnauthorized)
	},
	"Holder": func(v ledger.Ledger, _ foreign) error {
		_, err := v.Holder(ctx)
		return want(err, extensions.KindUnauthorized)
	},
	"ID":  func(v ledger.Ledger, _ foreign) error { return unless(v.ID() == "", nil) },
	"URL": func(v ledger.Ledger, _ foreign) error { return unless(v.URL() == "", nil) },
	"Guard": func(v ledger.Ledger, _ foreign) error {
		g, end := v.Guard(ctx)
		end()
		return unless(g.Err() == nil, nil)
	},
}

func init() { denied["Close"] = func(v ledger.Ledger, _ foreign) error { return v.Close() } }

func want(err error, kind extensions.Kind) error {
	if extensions.IsKind(err, kind) {
		return nil
	}
	return errors.Join(errLeak, err)
}

func none[T any](rows []T, err error) error { return unless(len(rows) > 0, err) }

func TestAnAccountSeesAndChangesNothingOfOthers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	others := []foreign{settle(h, "acme/other"), settle(h, "rival/x"), settle(h, "acme/web2")}
	for _, f := range others {
		s, err := h.end(h.view(f.account), f.account, h.at(h.view(f.account), f.account, own), &ledger.MeterClose{At: h.now})
		if err != nil {
			t.Fatal(s, err)
		}
	}
	head, err := h.base.Head(ctx, "rival")
	if err != nil {
		t.Fatal(err)
	}
	v := h.view("acme/web")
	of := reflect.TypeFor[ledger.Ledger]()
	for i := range of.NumMethod() {
		name := of.Method(i).Name
		check, ok := denied[name]
		if !ok {
			t.Errorf("nothing is said of %s", name)
			continue
		}
		for _, f := range others {
			if err := check(v, f); err != nil {
				t.Errorf("%s of %s: %v", name, f.account, err)
			}
		}
	}
	if after, err := h.base.Head(ctx, "rival"); err != nil || after != head {
		t.Errorf("something was written for rival: %+v, %v", after, err)
	}
}
