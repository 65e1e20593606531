package engine

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/secretref"
)

type (
	// Request is a user's request for a sandbox.
	Request = plan.Request
	// Sizes are limits that a request sets instead of its profile's.
	Sizes = profile.Sizes
	// Consumer is who a sandbox runs for.
	Consumer = plan.Consumer
	// Receipt is a state's record of a sandbox.
	Receipt = plan.Receipt
	// Planned is the expected result of a create.
	Planned = plan.Planned
	// Together are the sandboxes of one plan.
	Together = plan.Together
	// Estimate is the price of a sandbox before it exists.
	Estimate = plan.Estimate
	// EstimateCandidate is one place with its price or its refusals.
	EstimateCandidate = plan.EstimateCandidate
	// Route is the decision and how it was carried out.
	Route = plan.Route
	// Rejected is a candidate that routing refused.
	Rejected = plan.Rejected
	// Refusal is why a candidate is refused, with the remedy.
	Refusal = plan.Refusal
	// QuoteOptions are the extra inputs of a quote.
	QuoteOptions = plan.QuoteOptions
	// Quoted is a plan with the ledger's history.
	Quoted = plan.Quoted
	// Foretold is a place's own estimate beside ours.
	Foretold = plan.Foretold
	// Funds is the rest of one limit after the first choice.
	Funds = plan.Funds
)

// ReplaceByRecreate is the replace_mode that makes a sandbox again under its id.
const ReplaceByRecreate = plan.ReplaceByRecreate

// ReceiptKey is the key of a resource's [Receipt] in its private state.
const ReceiptKey = "receipt"

// Plan resolves, routes and prices req. It neither dials nor writes; see [life.Manager.Plan].
func (e *Engine) Plan(ctx context.Context, req Request) (Planned, error) {
	return e.life.Plan(ctx, req)
}

// PlanUpdate checks an in-place change of a live sandbox; see [life.Manager.PlanUpdate].
func (e *Engine) PlanUpdate(ctx context.Context, rec Receipt, old, req Request) ([]Notice, error) {
	return e.life.PlanUpdate(ctx, rec, old, req)
}

// Quote is Plan with QuoteOptions. It writes nothing, and dials only if Ask says so.
func (e *Engine) Quote(ctx context.Context, req Request, o QuoteOptions) (Quoted, error) {
	return e.life.Quote(ctx, req, o)
}

// EstimateLife estimates a live sandbox with another ttl; see [life.Manager.EstimateLife].
func (e *Engine) EstimateLife(rec Receipt, ttl time.Duration) (Estimate, bool) {
	return e.life.EstimateLife(rec, ttl)
}

// CheckLedger returns why the apply could not record this plan either; see [life.Manager.CheckLedger].
func (e *Engine) CheckLedger(ctx context.Context) error {
	return e.life.CheckLedger(ctx)
}

// ResolveSecret reads a secret where a reference says, as a profile's secret_refs do; see package secretref.
func ResolveSecret(ctx context.Context, ref string) (Secret, error) {
	return secretref.Resolve(ctx, ref, secretref.Options{})
}

// CheckSecretRef checks how a reference to a secret is written, and reads nothing. Errors are KindInvalid.
func CheckSecretRef(ref string) error { return secretref.Parse(ref) }

// LimitOf returns the limit of money or pace that refused; see [plan.LimitOf].
func LimitOf(err error) string { return plan.LimitOf(err) }

// UnnamedDouble reports whether a test double was refused because the profile does not name it; see
// [plan.UnnamedDouble].
func UnnamedDouble(rs []Refusal) bool { return plan.UnnamedDouble(rs) }

// Short formats an amount of an estimate for people; see [plan.Short].
func Short(amount string, up bool) string { return plan.Short(amount, up) }
