package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
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
	snapshot   *ledger.Snapshot
	notices    []Notice
}

// preparation says how far outside facts may influence the outcome.
type preparation struct {
	// binding: this is a create; credentials are required now. A plan only
	// tells about them.
	binding bool
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
	if err := checkWorkspace(p.resolved.Spec.Workspace); err != nil {
		return nil, err
	}
	if err := e.findOrigin(ctx, p); err != nil {
		return nil, err
	}
	query, err := e.query(ctx, p, how)
	if err != nil {
		return nil, err
	}
	p.decision = route.Select(query)
	for _, n := range p.decision.Notices {
		p.notices = append(p.notices, Notice{Summary: n})
	}
	p.estimate = e.estimate(p, query.Candidates)
	if err := p.decision.Err(); err != nil {
		return p, err
	}
	return p, p.checkMaxCost()
}

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
	if !extensions.ValidSnapshotID(p.req.FromSnapshot) {
		return extensions.Errorf(extensions.KindInvalid, "from_snapshot: %q is not a snapshot id", extensions.Clean(p.req.FromSnapshot, 80)).
			WithRemedy("use the id attribute of a sandboxer_snapshot")
	}
	l, err := e.reader(ctx)
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

// checkRequest refuses what no profile and no place can make right.
func checkRequest(req Request) error {
	if req.Name != "" && req.NamePrefix != "" {
		return invalid("name and name_prefix are both set", "set one of them")
	}
	if req.Name != "" {
		if err := CheckName(req.Name); err != nil {
			return err
		}
	}
	if req.NamePrefix != "" {
		if err := CheckName(strings.TrimRight(req.NamePrefix, "-._")); err != nil || len(req.NamePrefix) > maxName-randomSuffix {
			return invalid("name_prefix %q cannot start a name", "use letters, digits, '.', '_' and '-', at most 54 characters, starting with a letter or digit", extensions.Clean(req.NamePrefix, 80))
		}
	}
	for _, c := range []struct {
		field, value string
		allowed      []string
	}{
		{"on_conflict", req.OnConflict, []string{"error", "adopt"}},
		{"on_expiry", req.OnExpiry, []string{"replace", "keep"}},
		{"on_unreachable_destroy", req.OnUnreachableDestroy, []string{"fail", "forget"}},
		{"desired_mode", req.DesiredMode, []string{route.ModeRunning, route.ModePaused}},
		{"billing", req.Billing, []string{route.BillingPlatform, route.BillingBYOK}},
		{"consumer.actor", req.Consumer.Actor, []string{"adm", "agt", "atm"}},
	} {
		if c.value != "" && !slices.Contains(c.allowed, c.value) {
			return invalid("%s: %q is not known", "use "+strings.Join(c.allowed, " or "), c.field, extensions.Clean(c.value, 80))
		}
	}
	if req.FromSnapshot != "" && req.FromSandbox != "" {
		return invalid("from_snapshot and from_sandbox are both set", "a sandbox starts from one of them")
	}
	if req.FromSandbox != "" {
		if _, err := extensions.ParseID(req.FromSandbox); err != nil {
			return err
		}
	}
	if req.MaxCost != "" {
		if _, err := meter.ParseMoney(req.MaxCost); err != nil {
			return invalid("max_cost: %w", "write an amount and a currency, such as 1.00 USD", err)
		}
	}
	for _, m := range []map[string]string{req.Env} {
		for k, v := range m {
			if !extensions.ValidEnvName(k) || strings.ContainsRune(v, 0) {
				return invalid("env: %q cannot be an environment variable", "names have no '=', spaces or control characters, values no NUL byte", extensions.Clean(k, 80))
			}
		}
	}
	for k, v := range req.Secrets {
		if !extensions.ValidEnvName(k) || strings.ContainsRune(v.Reveal(), 0) {
			return invalid("secrets: %q cannot be an environment variable", "names have no '=', spaces or control characters, values no NUL byte", extensions.Clean(k, 80))
		}
	}
	return checkConsumer(req.Consumer)
}

func checkConsumer(c Consumer) error {
	for field, v := range map[string]string{"harness": c.Harness, "run_id": c.RunID, "session_id": c.SessionID, "job_id": c.JobID} {
		if len(v) > 256 || strings.ContainsFunc(v, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			return invalid("consumer.%s is longer than 256 bytes or has control characters", "shorten it", field)
		}
	}
	return nil
}

// invalid makes a KindInvalid error; args belong to format.
func invalid(format, remedy string, args ...any) error {
	return extensions.Errorf(extensions.KindInvalid, format, args...).WithRemedy("%s", remedy)
}

// checkMaxCost refuses a choice whose worst case is above the request's
// ceiling, or not known, with the arithmetic.
func (p *prepared) checkMaxCost() error {
	if p.req.MaxCost == "" || p.decision.Chosen == nil {
		return nil
	}
	limit, err := meter.ParseMoney(p.req.MaxCost)
	if err != nil {
		return err
	}
	q := p.quotes[p.decision.Chosen.ID()]
	ttl := profile.FormatDuration(time.Duration(p.resolved.Spec.TTL))
	worst, known := q.In(q.Max)
	if !known {
		return invalid("%s: what %s costs is not known, so it cannot be kept below max_cost %s",
			"add a price book for it to the catalog, or leave max_cost out", p.decision.Chosen.ID(), ttl, limit)
	}
	cmp, err := worst.Compare(limit)
	if err != nil {
		return err
	}
	if cmp <= 0 {
		return nil
	}
	hourly, _ := q.In(q.Hourly)
	return invalid("%s costs up to %s for a ttl of %s (%s an hour), above max_cost %s",
		"shorten ttl, raise max_cost or choose a cheaper profile", p.decision.Chosen.ID(), worst, ttl, hourly, limit)
}
