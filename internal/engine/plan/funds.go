package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Limits are the current limits on the spending of an account.
type Limits struct {
	Balances []ledger.Balance
	Budgets  []ledger.Budget
	Free     []ledger.Transfer // held for sandboxes that end before the planned one begins
}

// Need is the amount that a planned change would set aside, and the ceilings that it counts against.
type Need struct {
	Reserve  ledger.Reserve
	Ceilings []ledger.Ceiling

	by    Liability
	about string
	id    extensions.ID // of a live sandbox; "" = a new one
	payer string
	// shared is the sandbox's name, if several may hold it.
	shared string
	ttl    time.Duration
}

// Need returns the amount that a create would set aside for its choice: the place of the decision, or the next
// one if granted credit would pay there but does not suffice; a notice says so. If none is left, the error is
// that of the create. limits is nil if they cannot be read.
func (d *Decision) Need(limits *Limits) (Need, error) {
	cand := d.Choice.Chosen
	if limits != nil {
		var err error
		if cand, err = d.withCredit(limits.Balances); err != nil {
			return Need{}, err
		}
	}
	w := d.liabilityAt(cand)
	r, err := w.Reserve(w.ttl)
	if err != nil {
		return Need{}, err
	}
	n := Need{Reserve: *r, Ceilings: d.Ceilings, by: w, about: cand.ID(), payer: d.Evidence.Account, ttl: w.ttl}
	if Shared(d.Resolved.Spec.Scope) {
		n.shared = d.Request.Name
	}
	return n, nil
}

func (d *Decision) withCredit(balances []ledger.Balance) (*route.Candidate, error) {
	first := d.Choice.Chosen
	c := credit{requested: d.Request.Billing, granted: GrantedIn(balances)}
	query := d.query
	query.Candidates = slices.Clone(query.Candidates)
	for i := range query.Candidates {
		cand := &query.Candidates[i]
		cand.Credit = c.pays(cand, d.quotes[cand.ID()].Currency)
	}
	again := route.Select(query)
	if err := again.Err(); err != nil {
		return nil, err
	}
	if again.Chosen.ID() == first.ID() {
		return first, nil
	}
	for _, r := range again.Refusals() {
		if r.Candidate == first.ID() {
			d.Notices = append(d.Notices, notice.Notice{Summary: first.ID() + " will refuse the create, and " + again.Chosen.ID() + " chosen",
				Detail: r.Reason + ": " + r.Help})
		}
	}
	return again.Chosen, d.CheckPrice(again.Chosen, d.Evidence.Now)
}

// Extension returns the amount that a later deadline would set aside beyond the current hold; false if it needs
// none. Like the sandbox's end, it uses the account that the sandbox was made for.
func (w Liability) Extension(cat *catalog.Catalog, row ledger.Sandbox, deadline time.Time) (Need, bool, error) {
	if !deadline.After(row.ExpiresAt) {
		return Need{}, false, nil
	}
	lives := deadline.Sub(row.CreatedAt)
	r, err := w.Reserve(lives)
	if err != nil {
		return Need{}, false, err
	}
	return Need{Reserve: *r, Ceilings: Ceilings(cat, row.Account, w.Metered()), by: w, about: fmt.Sprintf("sandbox %s (%s)", row.ID, row.Name),
		id: row.ID, payer: row.Account, shared: row.Name, ttl: lives}, true, nil
}

// Paced returns what the ceilings of a need count: for a live sandbox only what it adds, and no creation.
func (n Need) Paced(limits *Limits) ([]ledger.Ceiling, *ledger.Reserve) {
	if n.id == "" {
		return n.Ceilings, &n.Reserve
	}
	more := n.Reserve // the current hold counts
	for _, x := range limits.Free {
		more.Amount = max(0, more.Amount-x.Amount)
	}
	return slices.DeleteFunc(slices.Clone(n.Ceilings), func(c ledger.Ceiling) bool { return c.Currency == "" }), &more
}

// Afford checks a need against limits, paces and the others of together. Hard limits refuse, as they would
// the create; soft budgets and ceilings are reported. limits is nil if they cannot be read.
func (n Need) Afford(limits *Limits, paces []ledger.Pace, together *Together) ([]notice.Notice, error) {
	one := intended{id: n.id, reserve: n.Reserve, account: n.payer, shared: n.shared, paces: paces}
	if limits == nil {
		return n.reached(one.paces), nil
	}
	one.free = limits.Free
	soft, err := together.against(one, limits.Balances, limits.Budgets)
	var told []notice.Notice
	for _, b := range soft {
		told = append(told, overSoft(b, n.Reserve))
	}
	return append(told, n.reached(one.paces)...), n.by.Unaffordable(err, n.about, n.ttl)
}

// reached reports ceilings that would refuse now. Time, or a sandbox that ends first, may make room, so
// nothing is refused yet.
func (n Need) reached(paces []ledger.Pace) (told []notice.Notice) {
	now := "If it were created now"
	if n.id != "" {
		now = "If it were extended now"
	}
	for _, pace := range paces {
		if err := pace.Refusal(""); err != nil {
			told = append(told, notice.Notice{Summary: "A ceiling of " + pace.Scope + " has been reached",
				Detail: fmt.Sprintf("%s, it would be refused: %s. What to do: %s.", now, (&ledger.TooFast{Pace: pace}).Error(),
					extensions.RemedyOf(err))})
		}
	}
	return told
}

func overSoft(b ledger.Budget, r ledger.Reserve) notice.Notice {
	return notice.Notice{Summary: fmt.Sprintf("The budget %s of %s would be exceeded", b.Name, b.Account),
		Detail: fmt.Sprintf("It needs up to %s %s for a ttl of %s, and %s of %s are left. The budget is soft, so it only warns.",
			meter.Amount(r.Amount), r.Currency, profile.FormatDuration(r.TTL), meter.Amount(max(0, b.Available())), meter.Amount(b.Limit))}
}

// Unaffordable explains a refusal for want of funds; about names what was refused. Other errors are
// returned unchanged.
func (n Need) Unaffordable(err error, about string) error {
	return n.by.Unaffordable(err, about, n.ttl)
}
