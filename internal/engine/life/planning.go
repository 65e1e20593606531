package life

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Plan resolves, routes and prices req without dialing and without writing. If routing or cost fails, the
// Planned is filled in as far as possible, so that refusals can be shown beside the error.
func (m *Manager) Plan(ctx context.Context, req plan.Request) (plan.Planned, error) {
	m.heardOf(req.Former)
	d, err := m.consider(ctx, req, purpose{})
	if d == nil {
		r, unresolved := plan.Merge(m.catalog.Profiles, req)
		if unresolved != nil {
			return plan.Planned{}, err
		}
		return (&plan.Asked{Resolved: r}).Planned(), err // an obstacle such as a missing folder does not concern the profile
	}
	out := d.Planned(err)
	unread := m.planNotices(ctx, d, &out)
	if err == nil {
		out.Notices = append(out.Notices, d.StalePrices()...)
		err = m.unusable(unread)
	}
	if err == nil && unread == nil {
		err = m.planJoin(ctx, d)
	}
	return out, err
}

// Quote is Plan with QuoteOptions. It writes nothing and dials only if Ask is set. It reports missing funds,
// but does not fail for them.
func (m *Manager) Quote(ctx context.Context, req plan.Request, o plan.QuoteOptions) (plan.Quoted, error) {
	if o.Expected < 0 {
		return plan.Quoted{}, extensions.Invalid("the expected duration %s is negative", "set a duration such as 30m", o.Expected)
	}
	d, err := m.consider(ctx, req, purpose{quote: o, tell: true})
	if d == nil {
		return plan.Quoted{}, err
	}
	out := d.Quoted(err)
	_ = m.planNotices(ctx, d, &out.Planned) // which reports an unreadable ledger
	if err == nil {
		out.Notices = append(out.Notices, d.StalePrices()...)
	}
	if o.History {
		if limits := m.limits(ctx, m.account); limits != nil {
			out.Funds = d.Funds(limits.Balances, limits.Budgets)
		}
	}
	if o.Ask {
		out.Foretold = m.foretell(ctx, d)
	}
	return out, err
}

// consider decides without carrying anything out: it checks the spec against what is on this machine, and
// the need against current funds.
func (m *Manager) consider(ctx context.Context, req plan.Request, why purpose) (*plan.Decision, error) {
	d, err := m.decide(ctx, req, why)
	if err != nil {
		return d, err
	}
	if err := m.checkPlanned(ctx, d); err != nil {
		return nil, err // other places do not matter
	}
	err = m.plannedFunds(ctx, d)
	if err != nil && why.tell {
		d.Notices = append(d.Notices, notice.Notice{Summary: "It could not be created now", Detail: err.Error() + ". What to do: " +
			extensions.RemedyOf(err)})
		return d, nil
	}
	return d, err
}

// EstimateLife estimates a live sandbox with another ttl: at its own place, with the prices it is settled
// with. It depends only on the receipt, the ttl and the catalog. false if the receipt has no prices or the
// catalog lacks its place.
func (m *Manager) EstimateLife(rec plan.Receipt, ttl time.Duration) (plan.Estimate, bool) {
	b, err := m.catalog.Named(rec.Extension)
	if err != nil {
		return plan.Estimate{}, false
	}
	prices, err := meter.ParseLine(rec.Prices)
	if err != nil {
		return plan.Estimate{}, false
	}
	c := plan.Candidate(b, nil, 0)
	if h, err := extensions.ParseHostRef(rec.Host); rec.Host != "" && err == nil {
		c = plan.Candidate(b, &h, 0)
		if n, ok := m.places.Narrower(b); ok && c.Unavailable == nil {
			c.Capabilities, _ = n.OnHost(plan.OnMachine(&c, here), h)
		}
	}
	return plan.EstimateLife(m.catalog, c, prices, ttl)
}

// planNotices reports what a plan can know beyond its arguments. The error says why the ledger could not
// be read, which is reported too.
func (m *Manager) planNotices(ctx context.Context, d *plan.Decision, out *plan.Planned) error {
	if c := d.Choice.Chosen; c != nil && c.Native && d.Resolved.Spec.Network.Default == "allow" {
		out.Notices = append(out.Notices, notice.Notice{Summary: "This sandbox shares the machine's network",
			Detail: "network.default is allow. At " + c.ID() + " the sandbox uses the machine's own network, with its loopback services and " +
				"cloud metadata."})
	}
	l, err := m.book.Reader(ctx)
	var row ledger.Sandbox
	if err == nil && d.Request.Name != "" {
		row, err = l.ByName(ctx, m.account, d.Request.Name)
		if absent(err) {
			err = nil
		}
	}
	if err != nil {
		out.Notices = append(out.Notices, ledgerUnread(err))
		return err
	}
	if err := m.book.CheckClock(); err != nil {
		out.Notices = append(out.Notices, notice.Notice{Summary: "This machine's clock is wrong", Detail: "An apply would fail: " + err.Error() +
			". " + extensions.RemedyOf(err)})
	}
	out.NameHolder = row.ID
	if plan.Shared(d.Resolved.Spec.Scope) && shared(row) {
		return nil // see planJoin
	}
	if row.ID == "" || !lifecycle.Usable(row.State) || lifecycle.Overdue(m.book.Now(), row.ExpiresAt) || d.Request.OnConflict == "adopt" {
		return nil // apply settles it, waits for it or takes it over
	}
	out.NameTaken = &notice.Notice{Summary: "The name is taken",
		Detail: fmt.Sprintf("Sandbox %[3]s (%[4]s, ends %[5]s) has the name %[1]s in account %[2]s. If it still exists, the apply fails: "+
			"choose another name, use name_prefix (required with create_before_destroy), import it, or set on_conflict = \"adopt\".",
			d.Request.Name, m.account, row.ID, lifecycle.Shown(row.State), row.ExpiresAt.UTC().Format(time.RFC3339))}
	return nil
}

// CheckLedger returns the error with which the apply would fail too: the ledger is damaged, or is not a ledger.
// It ignores a remote ledger that cannot be reached or accessed now, because that may change before the apply.
func (m *Manager) CheckLedger(ctx context.Context) error {
	_, err := m.book.Reader(ctx)
	return m.unusable(err)
}

func (m *Manager) unusable(err error) error {
	damaged := extensions.IsKind(err, extensions.KindInternal)
	if err == nil || errors.Is(err, ledger.ErrOldSchema) || m.book.Shared() && !damaged {
		return nil
	}
	return failClosed(err, "nothing can be created")
}

func ledgerUnread(err error) notice.Notice {
	if errors.Is(err, ledger.ErrOldSchema) {
		return notice.Notice{Summary: "The apply will migrate the ledger", Detail: err.Error() + ". Until then plans cannot read it."}
	}
	return notice.Notice{Summary: "The ledger cannot be read",
		Detail: strings.TrimSpace(err.Error() + ". An apply would fail. " + extensions.RemedyOf(err))}
}
