package mcpserver

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type createInput struct {
	Profile  string         `json:"profile" jsonschema:"one of the profiles in the tool's description"`
	Inputs   map[string]any `json:"inputs,omitempty" jsonschema:"values of the profile's inputs"`
	TTL      string         `json:"ttl,omitempty" jsonschema:"how long it may live, such as 10m or 1h; it cannot be changed later"`
	Snapshot string         `json:"from_snapshot,omitempty" jsonschema:"id of a snapshot of this session to start from"`
}

type sandboxOutput struct {
	ID        string `json:"id"`
	Profile   string `json:"profile"`
	ExpiresAt string `json:"expires_at" jsonschema:"when it ends at the latest, RFC 3339"`
	MaxCost   string `json:"max_cost" jsonschema:"the most that it can cost until then"`
}

func (m *made) view() sandboxOutput {
	return sandboxOutput{ID: string(m.ID), Profile: m.Profile, ExpiresAt: m.ExpiresAt.UTC().Format(time.RFC3339),
		MaxCost: m.share.Limit().String()}
}

func (s *Server) create(ctx context.Context, in createInput, notify func(engine.Notice)) (sandboxOutput, error) {
	req, err := s.request(in)
	if err != nil {
		return sandboxOutput{}, err
	}
	s.endOverdue(ctx, notify)
	if err := s.room(); err != nil {
		return sandboxOutput{}, err
	}
	defer s.leave()
	planned, err := s.engine.Plan(ctx, req)
	if err != nil {
		return sandboxOutput{}, err
	}
	if planned.TTL > s.limits.TTL {
		if req.TTL != "" {
			return sandboxOutput{}, extensions.Errorf(extensions.KindInvalid,
				"the ttl %s is too long: a sandbox of this session lives for at most %s", planned.TTL, s.limits.TTL).At("ttl")
		}
		req.TTL = s.limits.TTL.String()
		if planned, err = s.engine.Plan(ctx, req); err != nil {
			return sandboxOutput{}, err
		}
	}
	share := s.purse.Hold(planned.Estimate.Maximum, planned.Estimate.Currency)
	req.MaxCost = share.Limit().String()
	sandbox, err := s.engine.Create(ctx, req, nil, notify)
	if err != nil && sandbox.ID == "" {
		share.Spend(nil)
		return sandboxOutput{}, err
	}
	m := &made{Sandbox: sandbox, share: share}
	s.keep(m)
	if err != nil { // something may be there
		_, _ = s.finish(context.WithoutCancel(ctx), m, notify)
		return sandboxOutput{}, err
	}
	return m.view(), nil
}

// endOverdue settles the sandboxes that have ended by themselves, whose room others may take. The ledger's clock counts,
// because this machine's may be ahead, and they live.
func (s *Server) endOverdue(ctx context.Context, notify func(engine.Notice)) {
	now := s.engine.LedgerTime()
	s.mu.Lock()
	var over []*made
	for _, m := range s.sandboxes {
		if now.After(m.ExpiresAt) {
			over = append(over, m)
		}
	}
	s.mu.Unlock()
	for _, m := range over {
		_, _ = s.finish(ctx, m, notify)
	}
}

func (s *Server) request(in createInput) (engine.Request, error) {
	if _, ok := s.profiles[in.Profile]; !ok {
		return engine.Request{}, extensions.Errorf(extensions.KindInvalid, "the profile %q is not allowed in this session",
			extensions.Clean(in.Profile, 100)).At("profile").WithRemedy("use one of %s", strings.Join(s.references(), ", "))
	}
	inputs, err := s.inputs(in.Inputs)
	if err != nil {
		return engine.Request{}, err
	}
	if in.Snapshot != "" {
		s.mu.Lock()
		_, ok := s.snapshots[in.Snapshot]
		s.mu.Unlock()
		if !ok {
			return engine.Request{}, notYours("snapshot", in.Snapshot).At("from_snapshot")
		}
	}
	return engine.Request{
		Profile: in.Profile, NamePrefix: "mcp-", Inputs: inputs, TTL: in.TTL, FromSnapshot: in.Snapshot,
		Consumer: engine.Consumer{Actor: "agt", Harness: "mcp", SessionID: s.session},
	}, nil
}

// room takes one of the places for sandboxes; leave gives it back to the sandbox that was made, or to another.
func (s *Server) room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.making+len(s.sandboxes) >= s.limits.Sandboxes {
		return extensions.Errorf(extensions.KindExhausted, "this session allows %d sandboxes at once", s.limits.Sandboxes).
			WithRemedy("destroy one with sandbox_destroy")
	}
	s.making++
	return nil
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making--
}

func (s *Server) keep(m *made) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sandboxes[m.ID] = m
}

// find returns a sandbox of this session. What else exists is not told.
func (s *Server) find(id string) (*made, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.sandboxes[engine.ID(id)]; m != nil {
		return m, nil
	}
	return nil, notYours("sandbox", id)
}

func notYours(what, id string) *extensions.Error {
	return extensions.Errorf(extensions.KindNotFound, "this session has no %s %q", what, extensions.Clean(id, 100)).
		WithRemedy("sandbox_list shows what it has")
}

type listOutput struct {
	Sandboxes []sandboxOutput  `json:"sandboxes"`
	Snapshots []snapshotOutput `json:"snapshots"`
	Left      string           `json:"budget_left"`
	Room      int              `json:"sandboxes_left" jsonschema:"how many more sandboxes you may create now"`
}

func (s *Server) list(context.Context, struct{}, func(engine.Notice)) (listOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := listOutput{Sandboxes: []sandboxOutput{}, Snapshots: []snapshotOutput{}, Left: s.purse.Left().String(),
		Room: max(0, s.limits.Sandboxes-s.making-len(s.sandboxes))}
	for _, m := range s.sandboxes {
		out.Sandboxes = append(out.Sandboxes, m.view())
	}
	for _, v := range s.snapshots {
		out.Snapshots = append(out.Snapshots, snapshotView(v))
	}
	slices.SortFunc(out.Sandboxes, func(a, b sandboxOutput) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(out.Snapshots, func(a, b snapshotOutput) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

type destroyInput struct {
	ID string `json:"id" jsonschema:"id of a sandbox or snapshot of this session"`
}

type destroyOutput struct {
	Cost []string `json:"cost" jsonschema:"what it cost: one amount for each charge that is known"`
}

func (s *Server) destroy(ctx context.Context, in destroyInput, notify func(engine.Notice)) (destroyOutput, error) {
	s.mu.Lock()
	snapshot, kept := s.snapshots[in.ID]
	s.mu.Unlock()
	if kept {
		return destroyOutput{Cost: []string{}}, s.forget(ctx, snapshot, notify)
	}
	m, err := s.find(in.ID)
	if err != nil {
		return destroyOutput{}, err
	}
	report, err := s.finish(ctx, m, notify)
	if err != nil {
		return destroyOutput{}, err
	}
	out := destroyOutput{Cost: []string{}}
	for _, c := range report.Charges {
		if c.Amount != "" {
			out.Cost = append(out.Cost, c.Amount+" "+c.Currency)
		}
	}
	return out, nil
}

// finish ends a sandbox and settles its share. One that could not be ended stays known.
func (s *Server) finish(ctx context.Context, m *made, notify func(engine.Notice)) (engine.DestroyReport, error) {
	report, err := s.engine.Destroy(ctx, m.Receipt, engine.DestroyOptions{Notify: notify})
	tell(notify, report.Notices)
	if err != nil {
		return report, err
	}
	var spent [][2]string
	for _, c := range report.Charges {
		spent = append(spent, [2]string{c.Amount, c.Currency})
	}
	m.share.Spend(spent)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sandboxes, m.ID)
	return report, nil
}
