package account

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Evidence is what was kept outside a ledger, and shows what the ledger alone
// cannot: that its end was cut off, or that it was rewritten as a whole.
type Evidence struct {
	// Pins are heads told earlier: "ledger:stream:seq:hash", or without the
	// ledger's id, which is then that of this one.
	Pins []string
	// Receipts are those of a Terraform state.
	Receipts []Receipt
	// Exports are exported events, one CloudEvent a line, by the name to tell
	// them by.
	Exports map[string]io.Reader
}

// Receipt is what a receipt tells of the ledger.
type Receipt struct {
	ID     extensions.ID
	Ledger string // its id; "" = not told
	Head   string // pinned; "" = none
}

// Verified is what a check of the ledger found.
type Verified struct {
	Ledger    string // its id; "" where there is none
	Events    int64
	Sandboxes int64
	Heads     []string // of every stream, to be pinned the next time
	Findings  []string // empty = consistent, and as the evidence says
	Notes     []string // what could not be judged, and why
}

// Verify checks the ledger's chain, rows and invariants, and that nothing is
// gone from it that the evidence tells of. Findings are in the result; the error
// is for evidence that cannot be read, or is none (KindInvalid), and a ledger that cannot.
func (a *Account) Verify(ctx context.Context, ev Evidence) (Verified, error) {
	l, err := a.books.Reader(ctx)
	if err != nil {
		return Verified{}, err
	}
	v := Verified{Ledger: l.ID()}
	told, err := v.heads(ev)
	if err != nil {
		return v, err
	}
	exports := map[string]ledger.Export{}
	var exported []ledger.Head
	for name, r := range ev.Exports {
		x, err := ledger.ReadExport(r)
		if err != nil {
			return v, err
		}
		if len(x.Events)+len(x.Problems) == 0 {
			return v, extensions.Invalid("%s has no event: there is nothing to verify", "name a file that `sandboxer ledger export --format cloudevents` wrote, and that is whole", name)
		}
		exports[name] = x
		exported = append(exported, x.Events...)
	}
	pins := slices.Clone(told)
	if l.ID() == "" && len(exported) > 0 { // whoever has only the file can check that
		v.note("There is no ledger at %s: %d exported events were checked by themselves.", a.books.URL(), len(exported))
	} else {
		pins = append(pins, exported...)
	}
	r, err := l.Verify(ctx, pins...)
	if err != nil {
		return v, err
	}
	v.Events, v.Sandboxes = r.Events, r.Sandboxes
	v.Findings = append(v.Findings, r.Problems...)
	for _, name := range slices.Sorted(maps.Keys(exports)) {
		x := exports[name]
		for _, p := range append(x.Problems, x.Ends(append(told, r.Heads...))...) {
			v.Findings = append(v.Findings, name+": "+p)
		}
	}
	for _, h := range r.Heads {
		v.Heads = append(v.Heads, h.Pin())
	}
	v.estimates(ctx, l)
	return v, nil
}

// estimates notes how many ends nobody told: what was settled by them is what
// the ledger was told, and no more. What cannot be added up hides no finding.
func (v *Verified) estimates(ctx context.Context, l ledger.Ledger) {
	rows, err := l.Usage(ctx, ledger.UsageFilter{})
	if extensions.IsKind(err, extensions.KindInternal) {
		v.Findings = append(v.Findings, "usage cannot be added up: "+err.Error())
	} else if err != nil {
		v.note("It was not counted how many lives ended at a time that nobody told: %v.", err)
	}
	var lives, estimated int64
	for _, row := range rows {
		lives += row.Meters
		estimated += row.Estimated
	}
	if estimated > 0 {
		v.note("%d of %d settled lives ended at a time that nobody told: their charges count up to an estimated end.", estimated, lives)
	}
}

func (v *Verified) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// heads are those that the pins and receipts tell of.
func (v *Verified) heads(ev Evidence) ([]ledger.Head, error) {
	var out []ledger.Head
	for _, text := range ev.Pins {
		h, err := ledger.ParsePin(text, v.Ledger)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	bare := 0
	for _, rec := range ev.Receipts {
		if rec.Head == "" {
			bare++
			continue
		}
		h, err := ledger.ParsePin(rec.Head, rec.Ledger)
		if err != nil {
			v.Findings = append(v.Findings, fmt.Sprintf("the receipt of %s pins what is no head of a ledger", rec.ID))
			continue
		}
		out = append(out, h)
	}
	if bare > 0 {
		v.note("%d of %d receipts pin no head, and prove nothing here.", bare, len(ev.Receipts))
	}
	return out, nil
}
