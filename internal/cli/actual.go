package cli

import (
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// actualView is the stable JSON form of what a sandbox used. Quantities are null where nobody measured them.
type actualView struct {
	Source         string       `json:"source"`        // place | time | settled
	Why            *string      `json:"why_estimated"` // null: nothing is estimated
	At             time.Time    `json:"at"`
	RunningSeconds int64        `json:"running_seconds"`
	PausedSeconds  int64        `json:"paused_seconds"`
	Charges        []chargeView `json:"charges"` // while it lives, as if it ended now
	measuresView
}

// measuresView are a place's measures.
type measuresView struct {
	CPUMillis       *int64 `json:"cpu_ms"`
	MemoryMiBMillis *int64 `json:"memory_mib_ms"`
	EgressBytes     *int64 `json:"egress_bytes"`
}

func measuresOf(u *engine.MeasuredUse) (v measuresView) {
	if u != nil {
		v = measuresView{u.CPUMillis, u.MemoryMiBMillis, u.EgressBytes}
	}
	return v
}

func viewOfActual(a *engine.Actual) *actualView {
	if a == nil {
		return nil
	}
	return &actualView{Source: a.Source, Why: known(a.Why), At: a.At.UTC(), RunningSeconds: int64(a.Running.Seconds()),
		PausedSeconds: int64(a.Paused.Seconds()), Charges: chargeViews(a.Charges), measuresView: measuresOf(a.Usage)}
}

// lines show it to people. What was settled is among the charges already.
func (a *actualView) lines() [][2]string {
	if a == nil {
		return nil
	}
	used := hours(a.RunningSeconds)
	if used == "" {
		used = "0s"
	}
	if paused := hours(a.PausedSeconds); paused != "" {
		used += ", paused " + paused
	}
	out := [][2]string{{"ran", used}}
	if text := a.text(); text != "" {
		out = append(out, [2]string{"measured", text})
	}
	out = append(out, [2]string{"estimated", orEmpty(a.Why)})
	if a.Source == engine.ActualSettled {
		return out
	}
	for _, c := range a.Charges {
		out = append(out, [2]string{"so far", chargeLine(c)})
	}
	return out
}

// text names the quantities that were measured.
func (m measuresView) text() (text string) {
	for _, q := range []struct {
		n    *int64
		show func(int64) string
	}{
		{m.CPUMillis, func(n int64) string { return (time.Duration(n) * time.Millisecond).String() + " of active CPU" }},
		{m.MemoryMiBMillis, func(n int64) string { return strconv.FormatInt(n/1000, 10) + " MiB x s of memory" }},
		{m.EgressBytes, func(n int64) string { return strconv.FormatInt(n, 10) + " bytes sent" }},
	} {
		if q.n == nil {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += q.show(*q.n)
	}
	return text
}

// lifeMeasureView is the measure of one running sandbox in a report.
type lifeMeasureView struct {
	Sandbox engine.ID `json:"sandbox"`
	Name    string    `json:"name"`
	Source  string    `json:"source"`        // place | time
	Why     *string   `json:"why_estimated"` // null: nothing is estimated
	measuresView
}

func lifeMeasuresOf(list []engine.LifeMeasured) []lifeMeasureView {
	out := make([]lifeMeasureView, 0, len(list))
	for _, l := range list {
		v := lifeMeasureView{Sandbox: l.Sandbox, Name: l.Name, Source: engine.ActualTime, Why: known(l.Why), measuresView: measuresOf(l.Usage)}
		if l.Usage != nil {
			v.Source = engine.ActualPlace
		}
		out = append(out, v)
	}
	return out
}
