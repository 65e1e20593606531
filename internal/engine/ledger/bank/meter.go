package bank

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Meter counts one sandbox at one place, from its start to its end: a generation has one for each place
// where a create made something. A snapshot has one of its own, from when it is kept until it is gone.
type Meter struct {
	ID         string // sandbox id, "/", generation; from the second of a generation on, also "." and its number
	SandboxID  extensions.ID
	SnapshotID string // of a meter that counts the keeping of a snapshot of that sandbox; "" = it counts the sandbox
	Generation int64
	Currency   string
	Rates      json.RawMessage // a meter.PriceSnapshot: the prices that apply until the meter closes
	OpenedAt   time.Time
	ClosedAt   time.Time // zero = open
	// StartSource and EndSource say whose clock gave the time: backend | ours | deadline | seen-alive.
	StartSource  string
	EndSource    string
	EndEstimated bool
	For          Attribution // set by the ledger
	Used         Sums        // of the closed meter; set by the ledger
	Segments     []Segment
}

// Attribution says who and where a meter runs for, as of its opening: a re-created sandbox may run
// elsewhere and for another run.
type Attribution struct {
	Account        string // org/workspace
	Name           string // of the sandbox
	Profile        string
	ProfileVersion string
	Extension      string // binding id
	Host           string // host name, "" for vendor accounts
	// The request's consumer; the ledger reads only the request's field "consumer".
	Actor, Harness, RunID string
}

// Subject is what the meter counts: its sandbox, or the snapshot.
func (m Meter) Subject() string {
	if m.SnapshotID != "" {
		return m.SnapshotID
	}
	return string(m.SandboxID)
}

// Open reports whether the meter runs.
func (m Meter) Open() bool { return m.ClosedAt.IsZero() }

// Segment is a stretch of one mode and one set of sizes. Segments are contiguous: each starts where the
// previous one ends.
type Segment struct {
	Seq       int64 // 1 is the first
	Mode      meter.Mode
	Sizes     map[string]int64 // integer quantities: milli_vcpu, memory_mib, …
	StartedAt time.Time
	EndedAt   time.Time // zero = the running one
}

// MeterOps are the changes to the sandbox's meter, applied in this order.
type MeterOps struct {
	Began  *MeterOpen
	Close  *MeterClose
	Open   *MeterOpen
	Switch *MeterSwitch
}

// MeterOpen starts a meter. As Open, it is the first of the (new) generation: if one is open, or was, the
// change is *Stale. As Began, it is what a place says of the start, once or again: it starts the next meter
// of the generation if none is open, else corrects the open one; see Meter.Began.
type MeterOpen struct {
	At       time.Time
	Source   string
	Currency string
	Rates    json.RawMessage
	Mode     meter.Mode // "" = running
	Sizes    map[string]int64
}

// MeterSwitch ends the running segment and starts the next. A time before the running segment's start is
// moved to it.
type MeterSwitch struct {
	At    time.Time
	Mode  meter.Mode
	Sizes map[string]int64
}

// MeterClose ends the meter and books its charges. A time before the running segment's start is moved to
// it. Closing without an open meter does nothing, so a destroy is never blocked.
type MeterClose struct {
	At        time.Time
	Source    string
	Estimated bool
	// Usage is what the backend measured; nil if it reports nothing. The ledger prices it with the meter's
	// own rates.
	Usage *extensions.Usage
	// Refused says which measures were not believed, and why; see Believable. The event keeps it.
	Refused []string
}

// Opened returns a meter at its start; a zero At means now. before is the number of earlier meters of the
// generation.
func (o MeterOpen) Opened(id extensions.ID, generation, before int64, whom Attribution, now time.Time) Meter {
	m := Meter{ID: fmt.Sprintf("%s/%d", id, generation), SandboxID: id, Generation: generation, Currency: o.Currency,
		Rates: o.Rates, OpenedAt: orNow(o.At, now), StartSource: o.Source, For: whom}
	if before > 0 {
		m.ID += fmt.Sprintf(".%d", before+1)
	}
	mode := o.Mode
	if mode == "" {
		mode = meter.ModeRunning
	}
	m.Segments = []Segment{{Seq: 1, Mode: mode, Sizes: o.Sizes, StartedAt: m.OpenedAt}}
	return m
}

// Kept returns the meter of a snapshot at its start.
func (o MeterOpen) Kept(snapshot string, of extensions.ID, whom Attribution, now time.Time) Meter {
	m := o.Opened(extensions.ID(snapshot), 1, 0, whom, now)
	m.SnapshotID, m.SandboxID = snapshot, of
	return m
}

// Began returns the open meter as its place tells it later: with the place's own start, and with the sizes
// that it gave. Our own time corrects nothing, and neither does anything once a second segment has begun.
func (m Meter) Began(o MeterOpen) Meter {
	if len(m.Segments) != 1 {
		return m
	}
	first := m.Segments[0]
	if o.Source == SourceBackend && !o.At.IsZero() {
		m.OpenedAt, m.StartSource = orNow(o.At, o.At), o.Source
		first.StartedAt = m.OpenedAt
	}
	if len(o.Sizes) > 0 {
		first.Sizes, m.Currency, m.Rates = o.Sizes, o.Currency, o.Rates
	}
	m.Segments = []Segment{first}
	return m
}

// SourceBackend says that a time is the place's own.
const SourceBackend = "backend"

// Last returns the segment that runs, or ran last.
func (m Meter) Last() Segment { return m.Segments[len(m.Segments)-1] }

// ended returns the running segment with its end.
func (m Meter) ended(at, now time.Time) Segment {
	s := m.Last()
	s.EndedAt = orNow(at, now)
	if s.EndedAt.Before(s.StartedAt) {
		s.EndedAt = s.StartedAt
	}
	return s
}

// Switched returns the segment that ends and the one that follows.
func (m Meter) Switched(s MeterSwitch, now time.Time) (ended, next Segment) {
	ended = m.ended(s.At, now)
	return ended, Segment{Seq: ended.Seq + 1, Mode: s.Mode, Sizes: s.Sizes, StartedAt: ended.EndedAt}
}

// Closed returns the meter with its end, not yet charged.
func (m Meter) Closed(c MeterClose, now time.Time) Meter {
	last := m.ended(c.At, now)
	m.Segments = append(m.Segments[:len(m.Segments)-1:len(m.Segments)-1], last)
	m.ClosedAt, m.EndSource, m.EndEstimated = last.EndedAt, c.Source, c.Estimated
	return m
}

func orNow(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return at.UTC().Truncate(time.Microsecond)
}

// Gaps lists where the segments leave a gap or overlap.
func (m Meter) Gaps() (problems []string) {
	at := m.OpenedAt
	for i, s := range m.Segments {
		if s.Seq != int64(i+1) || !s.StartedAt.Equal(at) {
			problems = append(problems, fmt.Sprintf("meter %s: segment %d does not start where the one before ends", m.ID, s.Seq))
		}
		last := i == len(m.Segments)-1
		if !last && s.EndedAt.IsZero() || !s.EndedAt.IsZero() && s.EndedAt.Before(s.StartedAt) {
			problems = append(problems, fmt.Sprintf("meter %s: segment %d has no end, or ends before it starts", m.ID, s.Seq))
		}
		at = s.EndedAt
	}
	if len(m.Segments) == 0 || !at.Equal(m.ClosedAt) && !(m.ClosedAt.IsZero() && at.Equal(time.Time{})) {
		problems = append(problems, fmt.Sprintf("meter %s: its segments do not fill its life", m.ID))
	}
	return problems
}
