package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// audit collects what Verify finds.
type audit struct {
	*store
	ctx    context.Context
	q      queryer // one snapshot of the database
	report Report
	// folded holds the columns of every row as its events tell them, by
	// table and key.
	folded map[rowKey]map[string]json.RawMessage
	heads  map[string]Head
	// booked holds the charges as events tell them, by meter.
	booked map[string][]chargeFact
	// told holds the digest of every row that an event says was written, by name.
	told map[string]string
	// moved holds the transfers as events tell them, by id.
	moved map[string]Transfer
}

type rowKey struct{ table, account, key string }

func (a *audit) problem(format string, args ...any) {
	a.report.Problems = append(a.report.Problems, fmt.Sprintf(format, args...))
}

func (s *store) Verify(ctx context.Context, pinned ...Head) (Report, error) {
	a := &audit{store: s, ctx: ctx, report: Report{Ledger: s.id}, folded: map[rowKey]map[string]json.RawMessage{}, heads: map[string]Head{}, booked: map[string][]chargeFact{}, told: map[string]string{}, moved: map[string]Transfer{}}
	if s.reader == nil {
		a.pins(pinned, nil)
		return a.report, nil
	}
	defects, err := s.dialect.check(ctx, s.reader)
	if err != nil {
		return a.report, s.dialect.classify(err, "checking "+s.url)
	}
	a.report.Problems = defects
	view, err := s.reader.BeginTx(ctx, s.dialect.view)
	if err != nil {
		return a.report, s.dialect.classify(err, "checking "+s.url)
	}
	defer func() { _ = view.Rollback() }()
	a.q = view
	for _, check := range []func([]Head) error{a.chains, a.rows, a.committed, a.operations, a.metering, a.funds, a.outboxes, a.itself} {
		err := check(pinned)
		var damaged *unreadable
		if errors.As(err, &damaged) {
			a.problem("%v", damaged)
		} else if err != nil {
			return a.report, err
		}
	}
	return a.report, nil
}

// chains walks every stream: dense from 1, each hash over the one before, the
// columns as in the body, the end as recorded and as pinned.
func (a *audit) chains(pinned []Head) error {
	seen := map[Head]bool{}
	var prev Event
	var e Event
	var has bool // an operation, which is NULL where there is none
	stmt := "SELECT " + names(eventFields(&e)) + " FROM events ORDER BY stream, seq"
	err := query(a.ctx, a.store, a.q, stmt, nil, func(scan func(...any) error) error {
		e = Event{}
		if err := scan(targets(e.fields(&has))...); err != nil {
			return err
		}
		if has != (e.Operation != "") {
			a.problem("event %s/%d: its columns are not those of its content", e.Stream, e.Seq)
		}
		if e.Stream != prev.Stream {
			prev = Event{Stream: e.Stream}
		}
		a.link(prev, e)
		h := Head{Ledger: a.id, Stream: e.Stream, Seq: e.Seq, Hash: e.ID}
		a.heads[e.Stream], seen[h] = h, true
		a.report.Events++
		prev = e
		return nil
	})
	if err != nil {
		return err
	}
	stored, err := selectAll(a.ctx, a.store, a.q, "streams", func(p *Head) []field {
		return []field{text("stream", &p.Stream), number("seq", &p.Seq), text("hash", &p.Hash)}
	}, "ORDER BY stream")
	for _, h := range stored {
		h.Ledger = a.id
		if h.Seq == 0 && h.Hash == "" && a.heads[h.Stream].Seq == 0 {
			continue // it was locked, and nothing happened
		}
		if a.heads[h.Stream] != h {
			a.problem("stream %q should end at event %d (%.12s) but ends at %d (%.12s)", h.Stream, h.Seq, h.Hash, a.heads[h.Stream].Seq, a.heads[h.Stream].Hash)
		}
	}
	for stream, head := range a.heads {
		if !slices.ContainsFunc(stored, func(h Head) bool { return h.Stream == stream }) {
			a.problem("stream %q has events and no head", stream)
		}
		a.report.Heads = append(a.report.Heads, head)
	}
	slices.SortFunc(a.report.Heads, func(x, y Head) int { return cmp.Compare(x.Stream, y.Stream) })
	a.pins(pinned, seen)
	return err
}

// pins demands that each head told earlier is still in its chain.
func (a *audit) pins(pinned []Head, seen map[Head]bool) {
	for _, p := range pinned {
		if p.Seq == 0 || seen[p] {
			continue
		}
		if a.id == "" {
			a.problem("a receipt is of the ledger %s, and there is none here", p.Ledger)
			continue
		}
		if p.Ledger != a.id {
			a.problem("a receipt is of another ledger (%s, this is %s)", p.Ledger, a.id)
			continue
		}
		a.problem("event %d of stream %q (%.12s) is in a receipt and not in the ledger: events were cut off or rewritten", p.Seq, p.Stream, p.Hash)
	}
}

// link checks one event against the one before and folds it into its row.
func (a *audit) link(prev, e Event) {
	at := fmt.Sprintf("event %s/%d", e.Stream, e.Seq)
	if e.Seq != prev.Seq+1 {
		a.problem("%s follows event %d: something is missing", at, prev.Seq)
	}
	if e.PrevHash != prev.ID {
		a.problem("%s does not follow the event before it", at)
	}
	if chainHash(e.PrevHash, e.CloudEvent) != e.ID {
		a.problem("%s was altered: its hash is not that of its content", at)
	}
	var body struct {
		Type, Subject, Operation, Stream, Sequence, Time, Source string
		Data                                                     factData
	}
	if err := json.Unmarshal(e.CloudEvent, &body); err != nil {
		a.problem("%s cannot be read: %v", at, err)
		return
	}
	if body.Type != e.Type || body.Subject != e.Subject || body.Operation != e.Operation || body.Stream != e.Stream ||
		body.Sequence != fmt.Sprintf("%020d", e.Seq) || body.Time != instant(e.Time) || body.Source != sourcePrefix+a.id {
		a.problem("%s: its columns are not those of its content", at)
	}
	if m := body.Data.Meter; m != nil && m.Charges != nil {
		a.booked[m.Charged] = m.Charges
	}
	for row, digest := range body.Data.Rows {
		if a.told[row] = digest; digest == "" {
			delete(a.told, row)
		}
	}
	for _, x := range body.Data.Funds {
		a.moved[x.ID] = x
	}
	if body.Data.Row == "" {
		return
	}
	key := rowKey{body.Data.Row, "", e.Subject}
	if key.table == "hosts" {
		key.account = body.Data.Account
	}
	if body.Data.Deleted {
		delete(a.folded, key)
		return
	}
	row := a.folded[key]
	if row == nil {
		row = map[string]json.RawMessage{}
		a.folded[key] = row
	}
	for column, v := range body.Data.Set {
		row[column] = v
	}
}
