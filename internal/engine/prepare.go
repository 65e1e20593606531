package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/workspace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// prepared is a request after everything that needs no backend: resolved,
// routed, priced. Plans stop here; creates go on from here.
type prepared struct {
	req      Request
	resolved *profile.Resolved
	decision route.Decision
	quotes   map[string]meter.Quote // by candidate id
	estimate Estimate
	// fromLedger: the candidates depend on ledger rows, so the estimate is no
	// function of the arguments alone.
	fromLedger bool
	// past is how long lives of the profile ran, by binding; nil = not asked or none.
	past     map[string]*meter.History
	snapshot *ledger.Snapshot
	// judged are the hosts whose recorded facts took something away.
	judged []extensions.Host
	// seen are the facts of hosts that were looked at for this request, by ref.
	seen map[string]extensions.HostFacts
	// told is what places said of their room, by candidate id; zero = nothing.
	told map[string]extensions.Capacity
	// silent: a place was refused because it did not answer a moment ago.
	silent  bool
	notices []Notice
}

// preparation says how far outside facts may influence the outcome.
type preparation struct {
	// binding: this is a create; credentials are required now. A plan only
	// tells about them.
	binding bool
	// tell: what funds there are is only told, and refuses nothing.
	tell bool
	// again is the sandbox whose new life this is; "" for a new sandbox.
	again ID
	// lastResort: places that were silent a moment ago are tried again.
	lastResort bool
	// quote: what a quote knows beyond a plan.
	quote QuoteOptions
}

func (e *Engine) prepare(ctx context.Context, req Request, how preparation) (*prepared, error) {
	if err := checkRequest(req); err != nil {
		return nil, err
	}
	p := &prepared{req: req, quotes: map[string]meter.Quote{}}
	if p.req.SecretNames == nil {
		p.req.SecretNames = slices.Sorted(maps.Keys(req.Secrets))
	}
	var err error
	if p.resolved, err = e.resolve(p.req); err != nil {
		return nil, err
	}
	if err := refuseNotYet(e.catalog.Profiles, p.req, p.resolved); err != nil {
		return nil, err
	}
	if err := workspace.Check(p.resolved.Spec.Workspace.Repo, p.resolved.Spec.Workspace.Ref); err != nil {
		return nil, err
	}
	for _, name := range e.catalog.Profiles.IdleInputs(p.resolved.Lineage[0], req.Inputs) {
		p.notices = append(p.notices, Notice{Summary: "An input reaches nothing",
			Detail: fmt.Sprintf("%s declares the input %s and no field of it names {{input.%s}}: the value is kept and has no effect.", p.resolved.Lineage[0], name, name)})
	}
	if err := e.findOrigin(ctx, p); err != nil {
		return nil, err
	}
	query, err := e.chooseAnswering(ctx, p, how)
	if err != nil {
		return nil, err
	}
	if p.decision.Chosen == nil && len(p.judged) > 0 && e.probeAgain(ctx, p) {
		if query, err = e.chooseAnswering(ctx, p, how); err != nil {
			return nil, err
		}
	}
	for _, n := range p.decision.Notices {
		p.notices = append(p.notices, Notice{Summary: n})
	}
	p.estimate = e.estimate(p, query.Candidates)
	if err := p.decision.Err(); err != nil {
		return p, err
	}
	if err := e.checkPrice(p, p.decision.Chosen); err != nil || how.binding {
		return p, err // a create judges the spec with the streams it will use
	}
	if err := e.checkPlanned(ctx, p); err != nil {
		return nil, err // other places are beside the point
	}
	err = e.plannedFunds(ctx, p, query)
	if err != nil && how.tell {
		p.notices = append(p.notices, Notice{Summary: "It could not be made now", Detail: err.Error() + ". What to do: " + extensions.RemedyOf(err)})
		return p, nil
	}
	return p, err
}

// accountOf is whose permission, credit and limits count for a request.
func (e *Engine) accountOf(req Request) string { return cmp.Or(req.Account, e.account) }

func (e *Engine) resolve(req Request) (*profile.Resolved, error) {
	in := profile.Request{
		Profile: req.Profile, Name: req.Name, Inputs: req.Inputs, TTL: req.TTL, Scope: req.Scope, Env: req.Env,
		SecretNames: req.SecretNames, FromSandbox: ID(req.FromSandbox),
	}
	if req.FromSnapshot != "" {
		in.FromSnapshot = &extensions.SnapshotRef{ID: req.FromSnapshot}
	}
	return profile.Resolve(e.catalog.Profiles, in)
}

// findOrigin finds where the snapshot or the sandbox to fork lives, as far as
// the ledger knows.
func (e *Engine) findOrigin(ctx context.Context, p *prepared) error {
	if p.req.FromSnapshot == "" {
		return nil
	}
	p.fromLedger = true // where the snapshot lives decides who can restore it
	l, err := e.book.Reader(ctx)
	if err != nil {
		return err
	}
	s, err := l.GetSnapshot(ctx, p.req.FromSnapshot)
	switch {
	case extensions.IsKind(err, extensions.KindNotFound):
		return nil // made on another machine: the chosen backend is asked at apply
	case err != nil:
		return err
	case s.State == ledger.SnapshotDeleted:
		return extensions.Errorf(extensions.KindInvalid, "snapshot %s was deleted at %s", s.ID, s.EndedAt.Format(time.RFC3339)).
			WithRemedy("choose another snapshot or leave from_snapshot out")
	}
	p.snapshot = &s
	return nil
}
