package cli

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// sandboxView is the stable JSON form of a sandbox.
type sandboxView struct {
	ID         engine.ID           `json:"id"`
	Account    string              `json:"account"`
	Name       string              `json:"name"`
	Profile    string              `json:"profile"`
	Version    string              `json:"version"`
	State      string              `json:"state"`
	Mode       string              `json:"mode,omitempty"`
	Extension  string              `json:"extension,omitempty"`
	Host       string              `json:"host,omitempty"`
	CreatedAt  time.Time           `json:"created_at,omitzero"`
	ExpiresAt  time.Time           `json:"expires_at,omitzero"`
	EndedAt    time.Time           `json:"ended_at,omitzero"`
	Estimated  bool                `json:"end_estimated,omitempty"`
	Expiry     string              `json:"expiry,omitempty"`
	IdleReap   string              `json:"idle_reap,omitempty"`
	IdleSince  time.Time           `json:"idle_since,omitzero"` // of `sandbox get`
	Generation int64               `json:"generation"`
	RunID      string              `json:"run_id,omitempty"`
	Reason     string              `json:"reason,omitempty"`
	Reach      engine.Reachability `json:"reachability,omitzero"`
	Leases     []leaseView         `json:"leases,omitempty"`
	Charges    []chargeView        `json:"charges,omitempty"`
	Actual     *actualView         `json:"meter_actual,omitempty"` // of `sandbox get`
}

// leaseView is one of several leases on a sandbox.
type leaseView struct {
	ID      string    `json:"id"`
	Actor   string    `json:"actor,omitempty"`
	Harness string    `json:"harness,omitempty"`
	RunID   string    `json:"run_id,omitempty"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
}

func leaseViews(list []engine.LeaseView) (out []leaseView) {
	for _, h := range list {
		c := h.Request.Consumer
		out = append(out, leaseView{h.ID, c.Actor, c.Harness, c.RunID, h.Since.UTC(), h.Until.UTC()})
	}
	return out
}

func (h leaseView) line(now time.Time) string {
	text := "until " + withRelative(h.Until, now)
	for _, who := range []string{h.RunID, h.Harness, h.Actor} {
		if who != "" {
			text = who + ", " + text
		}
	}
	return text
}

type chargeView struct {
	Component string  `json:"component"`
	Quantity  string  `json:"quantity"`
	Unit      string  `json:"unit"`
	Amount    *string `json:"amount"` // null: no price known
	Currency  *string `json:"currency"`
	Memo      bool    `json:"memo"`
}

func viewOf(s engine.Sandbox) sandboxView {
	return sandboxView{
		ID: s.ID, Account: s.Account, Name: s.Name, Profile: s.Profile, Version: s.Version,
		State: s.State, Mode: s.Mode, Extension: s.Extension, Host: s.HostName,
		CreatedAt: s.CreatedAt.UTC(), ExpiresAt: s.ExpiresAt.UTC(), EndedAt: s.EndedAt.UTC(), Estimated: s.EndEstimated,
		Expiry: s.Expiry, IdleReap: idleSpan(s.IdleReap), IdleSince: s.IdleSince.UTC(),
		Generation: s.Generation, RunID: s.Request.Consumer.RunID, Reason: s.Reason, Reach: s.Reach,
		Leases: leaseViews(s.Leases),
	}
}

// idleSpan is how long a sandbox may be idle, as profiles say it; "" = as long as it lives.
func idleSpan(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return engine.FormatDuration(d)
}

func viewsOf(list []engine.Sandbox) []sandboxView {
	out := make([]sandboxView, 0, len(list))
	for _, s := range list {
		out = append(out, viewOf(s))
	}
	return out
}

func chargeViews(list []engine.Charge) []chargeView {
	out := make([]chargeView, 0, len(list))
	for _, c := range list {
		out = append(out, chargeView{c.Component, c.Quantity, c.Unit, known(c.Amount), known(c.Currency), c.Memo})
	}
	return out
}

func printSandboxes(w io.Writer, list []sandboxView, now time.Time) error {
	rows := [][]string{wide(w, []string{"ID", "NAME", "STATE", "PROFILE", "PLACE", "EXPIRES"},
		"VERSION", "CREATED", "ENDED BY", "IDLE", "RUN", "REASON")}
	for _, s := range list {
		state := s.State
		if s.Mode == string(engine.Paused) {
			state += ", paused"
		}
		if n := len(s.Leases); n > 0 {
			state += ", held by " + strconv.Itoa(n)
		}
		rows = append(rows, wide(w, []string{string(s.ID), s.Name, state, s.Profile, placeName(s.Extension, s.Host), s.end(now)},
			s.Version, stamp(s.CreatedAt), s.Expiry, s.IdleReap, s.RunID, s.Reason))
	}
	return grid(w, rows)
}

// end says when a live sandbox will end, or when an ended one did.
func (s sandboxView) end(now time.Time) string {
	if !s.EndedAt.IsZero() {
		return "ended " + relative(s.EndedAt, now)
	}
	return relative(s.ExpiresAt, now)
}

func (s sandboxView) ended(now time.Time) string {
	text := withRelative(s.EndedAt, now)
	if s.Estimated {
		text += ", estimated: the exact time is unknown"
	}
	return text
}

func (s sandboxView) liveMode() string {
	if !s.EndedAt.IsZero() {
		return ""
	}
	return s.Mode
}

// deadline says when the sandbox must end, and who ends it.
func (s sandboxView) deadline(now time.Time) string {
	if !s.EndedAt.IsZero() || s.ExpiresAt.IsZero() {
		return stamp(s.ExpiresAt)
	}
	text := withRelative(s.ExpiresAt, now)
	switch s.Expiry {
	case "native":
		text += ", enforced by the place"
	case "host":
		text += ", enforced by the host"
	case "sweep":
		text += ", enforced by the next run or `sandboxer sweep`"
	}
	return text
}

// idleEnd says how long it may be idle, and since when it is.
func (s sandboxView) idleEnd(now time.Time) string {
	if s.IdleReap == "" || !s.EndedAt.IsZero() {
		return s.IdleReap
	}
	text := "for " + s.IdleReap
	if !s.IdleSince.IsZero() {
		text += "; idle since " + withRelative(s.IdleSince, now)
	}
	return text
}

func printSandbox(w io.Writer, s sandboxView, now time.Time) error {
	lines := [][2]string{
		{"id", string(s.ID)},
		{"name", s.Name},
		{"account", s.Account},
		{"state", s.State},
		{"reason", s.Reason},
		{"mode", s.liveMode()},
		{"profile", s.Profile + "@" + s.Version},
		{"place", placeName(s.Extension, s.Host)},
		{"created", stamp(s.CreatedAt)},
		{"deadline", s.deadline(now)},
		{"ends if idle", s.idleEnd(now)},
		{"ended", s.ended(now)},
		{"run", s.RunID},
		{"generation", strconv.FormatInt(s.Generation, 10)},
		{"ssh", s.Reach.SSH},
		{"workspace", s.Reach.WorkDir},
		{"remote folder", s.Reach.RemoteDir},
		{"compose project", s.Reach.ComposeProject},
	}
	for _, m := range []map[string]string{s.Reach.URLs, s.Reach.Ports} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			lines = append(lines, [2]string{k, m[k]})
		}
	}
	for _, h := range s.Leases {
		lines = append(lines, [2]string{"held", h.line(now)})
	}
	for _, c := range s.Charges {
		lines = append(lines, [2]string{"charge", chargeLine(c)})
	}
	return facts(w, append(lines, s.Actual.lines()...))
}

func chargeLine(c chargeView) string {
	counted := c.Quantity + " " + c.Unit
	if n, err := strconv.ParseInt(c.Quantity, 10, 64); err == nil && c.Unit == "ms" {
		counted = (time.Duration(n) * time.Millisecond).String()
	}
	line := c.Component + ": " + amount(orEmpty(c.Amount), orEmpty(c.Currency)) + " for " + counted
	if c.Memo {
		line += " (recorded only: no credit used)"
	}
	return line
}

func withRelative(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return stamp(t) + " (" + relative(t, now) + ")"
}
