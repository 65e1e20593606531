package life

import (
	"context"
	"errors"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	RunExited      Outcome = "exited"      // the command ended by itself, with any exit code
	RunTimeout     Outcome = "timeout"     // the command was killed after its timeout, or at the sandbox's deadline
	RunInterrupted Outcome = "interrupted" // the caller gave up
	RunFailed      Outcome = "failed"      // sandboxer or the place failed
)

// Run is one command in a sandbox, as far as it came.
type Run struct {
	Outcome Outcome
	Sandbox Sandbox // its ID is empty if none was made
	Reused  bool    // an earlier run made it
	Kept    bool    // it lives on, for later runs
	Result  extensions.ExecResult
	Ended   DestroyReport
	// Cost is the settled cost or, for a kept sandbox, the cost so far.
	Cost                         Cost
	Creating, Running, Finishing time.Duration
	// EndErr says why the sandbox could not be ended; nil = it was, or is kept.
	EndErr error
}

// Cost is a sum of charges. Amount is an exact decimal string; "" = unknown.
type Cost struct {
	Amount, Currency string
	Memo             bool // recorded, and no wallet pays it
}

// Made gets the command of a run just before it starts, and may change it or refuse. over is called once it has ended.
type Made func(cmd *extensions.ExecRequest) (over func(), err error)

// Run makes a sandbox, runs a command inside and ends the sandbox, whatever happened and even if ctx has ended. With
// [plan.OnConflictReuse], the sandbox stays for later runs. cmd.Timeout 0 means until the sandbox's deadline. The
// error is nil if the command ended by itself. made, which may be nil, is called once there is a sandbox.
func (m *Manager) Run(ctx context.Context, req plan.Request, cmd extensions.ExecRequest, made Made, notify notice.Notify) (r Run,
	err error) {
	r.Outcome = RunFailed
	if err := cmd.Check(); err != nil {
		return r, err
	}
	if req, err = m.here(req, &cmd); err != nil {
		return r, err
	}
	r.Reused, req.Runs = true, true
	r.Creating = took(func() {
		r.Sandbox, err = m.Create(ctx, req, func(Sandbox) { r.Reused = false }, notify)
	})
	r.Reused = r.Reused && r.Sandbox.ID != ""
	if err == nil {
		r.Kept = req.OnConflict == plan.OnConflictReuse
		r.Running = took(func() { r.Result, r.Outcome, err = m.runIn(ctx, r.Sandbox, cmd, made) })
	}
	if ctx.Err() != nil && err != nil {
		r.Outcome = RunInterrupted
	}
	if r.Sandbox.ID == "" || r.Reused && !r.Kept { // none was made, or it is not ours
		return r, err
	}
	r.Finishing = took(func() { m.finish(ctx, &r, notify) })
	return r, errors.Join(err, r.EndErr)
}

func took(do func()) time.Duration {
	begun := time.Now()
	do()
	return time.Since(begun)
}

// runIn runs a command until its timeout, at most until the sandbox's deadline.
func (m *Manager) runIn(ctx context.Context, s Sandbox, cmd extensions.ExecRequest, made Made) (extensions.ExecResult, Outcome,
	error) {
	if made != nil {
		over, err := made(&cmd)
		if err != nil {
			return extensions.ExecResult{}, RunFailed, err
		}
		defer over()
	}
	if cmd.Timeout == 0 {
		cmd.Timeout = max(s.ExpiresAt.Sub(m.book.Now()), time.Millisecond)
	}
	res, err := m.Exec(ctx, s.Receipt, cmd)
	switch {
	case err == nil:
		return res, RunExited, nil
	case extensions.IsKind(err, extensions.KindTimeout):
		return res, RunTimeout, err
	case lifecycle.Overdue(m.book.Now(), s.ExpiresAt):
		return res, RunTimeout, extensions.Errorf(extensions.KindTimeout, "the sandbox reached its deadline (ttl %s) while the command ran: %w",
			profile.FormatDuration(s.ExpiresAt.Sub(s.CreatedAt)), err).WithRemedy("set a longer ttl or a shorter timeout")
	}
	return res, RunFailed, err
}

// finish ends the sandbox of a run, unless it is kept, and adds up its cost.
func (m *Manager) finish(ctx context.Context, r *Run, notify notice.Notify) {
	ctx, cancel := settling(ctx)
	defer cancel()
	if r.Kept {
		if used, err := m.Actual(ctx, r.Sandbox.ID); err == nil && used != nil {
			r.Cost = costOf(used.Charges)
		}
		return
	}
	r.Ended, r.EndErr = m.Destroy(ctx, r.Sandbox.Receipt, DestroyOptions{Notify: notify})
	r.Cost = costOf(r.Ended.Charges)
	for _, n := range r.Ended.Notices {
		notify.Tell(n.Summary, "%s", n.Detail)
	}
}

// costOf adds charges up; the sum is unknown if one is, or if there is none.
func costOf(charges []Charge) (sum Cost) {
	var total meter.Amount
	for i, c := range charges {
		a, err := meter.ParseAmount(c.Amount)
		if err != nil || i > 0 && c.Currency != sum.Currency {
			return Cost{}
		}
		if total, err = total.Add(a); err != nil {
			return Cost{}
		}
		sum = Cost{Amount: total.String(), Currency: c.Currency, Memo: c.Memo && (i == 0 || sum.Memo)}
	}
	return sum
}
