package chain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
)

// Audit reads the events of a ledger, stream by stream in order, checks that they are intact, and collects
// what they say about everything else.
type Audit struct {
	Report Report
	prev   Event
	heads  map[string]Head
	seen   map[Head]bool
	// Folded holds the columns of every row according to its events, by table and key.
	Folded map[RowKey]map[string]json.RawMessage
	// Booked holds the charges according to events, by meter.
	Booked map[string][]ChargeFact
	// Told holds the digest of every row that an event says was written, by name.
	Told map[string]string
	// Moved holds the transfers according to events, by id.
	Moved map[string]bank.Transfer
}

// RowKey identifies a row whose columns are in events.
type RowKey struct{ Table, Account, Key string }

// NewAudit starts an audit of the ledger with this id.
func NewAudit(ledger string) *Audit {
	return &Audit{Report: Report{Ledger: ledger}, heads: map[string]Head{}, seen: map[Head]bool{},
		Folded: map[RowKey]map[string]json.RawMessage{},
		Booked: map[string][]ChargeFact{}, Told: map[string]string{}, Moved: map[string]bank.Transfer{}}
}

// Problem adds a finding.
func (a *Audit) Problem(format string, args ...any) {
	a.Report.Problems = append(a.Report.Problems, fmt.Sprintf(format, args...))
}

// Next takes the next event. It checks that events are dense from 1, that each hash covers the previous
// one, and that the columns match the body. operation says that the event's column for it is not NULL.
func (a *Audit) Next(e Event, operation bool) {
	if operation != (e.Operation != "") {
		a.Problem("event %s/%d: its columns differ from its content", e.Stream, e.Seq)
	}
	if e.Stream != a.prev.Stream {
		a.prev = Event{Stream: e.Stream}
	}
	a.link(a.prev, e)
	h := Head{Ledger: a.Report.Ledger, Stream: e.Stream, Seq: e.Seq, Hash: e.ID}
	a.heads[e.Stream], a.seen[h] = h, true
	a.Report.Events++
	a.prev = e
}

// CompareHeads compares the ends of the streams with the recorded ones and with pinned heads.
func (a *Audit) CompareHeads(stored, pinned []Head) {
	for _, h := range stored {
		h.Ledger = a.Report.Ledger
		if h.Seq == 0 && h.Hash == "" && a.heads[h.Stream].Seq == 0 {
			continue // locked, but nothing happened
		}
		if a.heads[h.Stream] != h {
			a.Problem("stream %q should end at event %d (%.12s) but ends at %d (%.12s)", h.Stream, h.Seq, h.Hash, a.heads[h.Stream].Seq,
				a.heads[h.Stream].Hash)
		}
	}
	for stream, head := range a.heads {
		if !slices.ContainsFunc(stored, func(h Head) bool { return h.Stream == stream }) {
			a.Problem("stream %q has events but no head", stream)
		}
		a.Report.Heads = append(a.Report.Heads, head)
	}
	slices.SortFunc(a.Report.Heads, func(x, y Head) int { return cmp.Compare(x.Stream, y.Stream) })
	a.Pins(pinned)
}

// Pins requires every pinned head to be in its chain still.
func (a *Audit) Pins(pinned []Head) {
	for _, p := range pinned {
		if p.Seq == 0 || a.seen[p] {
			continue
		}
		if a.Report.Ledger == "" {
			a.Problem("a receipt belongs to the ledger %s, but there is no ledger here", p.Ledger)
			continue
		}
		if p.Ledger != a.Report.Ledger {
			a.Problem("a receipt belongs to another ledger (%s, this is %s)", p.Ledger, a.Report.Ledger)
			continue
		}
		a.Problem("event %d of stream %q (%.12s) is in a receipt but not in the ledger: events were cut off or rewritten", p.Seq, p.Stream,
			p.Hash)
	}
}

// link checks one event against the previous one and folds it into its row.
func (a *Audit) link(prev, e Event) {
	at := fmt.Sprintf("event %s/%d", e.Stream, e.Seq)
	if e.Seq != prev.Seq+1 {
		a.Problem("%s follows event %d: something is missing", at, prev.Seq)
	}
	if e.PrevHash != prev.ID {
		a.Problem("%s does not follow the event before it", at)
	}
	if Hash(e.PrevHash, e.CloudEvent) != e.ID {
		a.Problem("%s was altered: its hash does not match its content", at)
	}
	var body struct {
		Type, Subject, Operation, Stream, Sequence, Time, Source string
		Data                                                     Data
	}
	if err := json.Unmarshal(e.CloudEvent, &body); err != nil {
		a.Problem("%s cannot be read: %v", at, err)
		return
	}
	if body.Type != e.Type || body.Subject != e.Subject || body.Operation != e.Operation || body.Stream != e.Stream ||
		body.Sequence != fmt.Sprintf("%020d", e.Seq) || body.Time != Instant(e.Time) || body.Source != sourcePrefix+a.Report.Ledger {
		a.Problem("%s: its columns differ from its content", at)
	}
	if m := body.Data.Meter; m != nil && m.Charges != nil {
		a.Booked[m.Charged] = m.Charges
	}
	for row, digest := range body.Data.Rows {
		if a.Told[row] = digest; digest == "" {
			delete(a.Told, row)
		}
	}
	for _, x := range body.Data.Funds {
		a.Moved[x.ID] = x
	}
	if body.Data.Row == "" {
		return
	}
	key := RowKey{body.Data.Row, "", e.Subject}
	if key.Table == "hosts" {
		key.Account = body.Data.Account
	}
	if body.Data.Deleted {
		delete(a.Folded, key)
		return
	}
	row := a.Folded[key]
	if row == nil {
		row = map[string]json.RawMessage{}
		a.Folded[key] = row
	}
	for column, v := range body.Data.Set {
		row[column] = v
	}
}
