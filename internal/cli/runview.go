package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// runView is the report of a run. docs/guides/run.md documents it.
type runView struct {
	Outcome     engine.Outcome `json:"outcome"`
	ExitCode    int            `json:"exit_code"`         // ours
	CommandCode *int           `json:"command_exit_code"` // null: the command did not end by itself
	Error       *errorView     `json:"error"`
	SandboxID   engine.ID      `json:"sandbox_id"`
	Name        string         `json:"name"`
	Profile     string         `json:"profile"`
	Version     string         `json:"version"`
	Place       string         `json:"place"`
	Extension   string         `json:"extension"`
	Host        string         `json:"host"`
	Reused      bool           `json:"reused"`
	Kept        bool           `json:"kept"`
	Left        bool           `json:"left"` // it was to end, and could not be
	ExpiresAt   *time.Time     `json:"expires_at"`
	StartedAt   time.Time      `json:"started_at"`
	Durations   struct {
		Create  int64 `json:"create"`
		Command int64 `json:"command"`
		Destroy int64 `json:"destroy"`
		Total   int64 `json:"total"`
	} `json:"durations_ms"`
	Quote   *costView    `json:"quote"` // the most that it could cost
	Cost    *costView    `json:"cost"`  // settled, or so far if kept; null: not known
	Charges []chargeView `json:"charges"`
}

// costView is an exact amount.
type costView struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Memo     bool   `json:"memo"` // no wallet pays it
}

func millis(d time.Duration) int64 { return d.Round(time.Millisecond).Milliseconds() }

func viewOfRun(ctx context.Context, r engine.Run, err error) runView {
	s := r.Sandbox
	v := runView{Outcome: r.Outcome, SandboxID: s.ID, Name: s.Name, Profile: s.Profile, Version: s.Version,
		Extension: s.Extension, Host: s.HostName, Reused: r.Reused, Kept: r.Kept, Left: r.EndErr != nil, Charges: chargeViews(r.Ended.Charges)}
	if v.Outcome == "" {
		v.Outcome = engine.RunFailed
	}
	if s.ID != "" {
		end := s.ExpiresAt.UTC()
		v.Place, v.ExpiresAt = placeName(s.Extension, s.HostName), &end
	}
	if r.Outcome == engine.RunExited {
		v.CommandCode = &r.Result.ExitCode
	}
	if e := s.Estimate; e.Maximum != "" {
		v.Quote = &costView{Amount: e.Maximum, Currency: e.Currency}
	}
	if r.Cost.Amount != "" {
		v.Cost = &costView{r.Cost.Amount, r.Cost.Currency, r.Cost.Memo}
	}
	v.Durations.Create, v.Durations.Command, v.Durations.Destroy = millis(r.Creating), millis(r.Running), millis(r.Finishing)
	if err != nil {
		v.Error = &errorView{extensions.KindOf(err), err.Error(), extensions.RemedyOf(err)}
	}
	v.ExitCode = runCode(ctx, r, err)
	return v
}

// runCode is the exit code of a run: the command's, unless something else is worth more.
func runCode(ctx context.Context, r engine.Run, err error) int {
	var by interruption
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errClosed):
		return exitClosed
	case r.Outcome == engine.RunInterrupted && errors.As(cause, &by):
		return by.code()
	case r.Outcome == engine.RunTimeout:
		return exitExecTimeout
	case r.Outcome == engine.RunExited && (err == nil || r.Result.ExitCode != 0):
		return r.Result.ExitCode
	}
	return exitExecFailed
}

// exit returns the end of the program; nil = success.
func (v runView) exit() error {
	if v.ExitCode == exitOK {
		return nil
	}
	return exitCode(v.ExitCode)
}

// explained adds why a caller gave up.
func (v runView) explained(ctx context.Context, err error) error {
	var by interruption
	if v.Outcome == engine.RunInterrupted && errors.As(context.Cause(ctx), &by) {
		return extensions.Errorf(extensions.KindInterrupted, "%w: %w", by, err)
	}
	return err
}

// tellCost says in one line what a run cost. A run that made nothing cost nothing.
func (a *app) tellCost(v runView) {
	if a.global.format == formatJSON {
		if b, err := json.Marshal(v); err == nil {
			a.say("%s", b)
		}
		return
	}
	if v.SandboxID == "" {
		return
	}
	cost := "unknown"
	if v.Cost != nil {
		cost = amount(v.Cost.Amount, v.Cost.Currency)
	}
	line := fmt.Sprintf("cost: %s at %s", cost, v.Place)
	if v.Quote != nil {
		line += fmt.Sprintf(" (at most %s)", amount(engine.Short(v.Quote.Amount, true), v.Quote.Currency))
	}
	now := time.Now()
	switch {
	case v.Kept:
		line += fmt.Sprintf(" so far; %s is kept as %s and ends %s", v.SandboxID, v.Name, relative(*v.ExpiresAt, now))
	case v.Left:
		line += fmt.Sprintf("; %s could not be ended and ends %s", v.SandboxID, relative(*v.ExpiresAt, now))
	}
	a.say("%s", line)
}
