package account

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Evidence is a record outside the ledger. It shows what the ledger alone cannot: that its end was cut off, or
// that all of it was rewritten.
type Evidence struct {
	// Pins are earlier heads: "ledger:stream:seq:hash"; without the ledger's id, they belong to this one.
	Pins []string
	// Receipts are those of a Terraform state.
	Receipts []Receipt
	// Exports are exported events, one CloudEvent per line, by a name for messages.
	Exports map[string]io.Reader
}

// Receipt is what a receipt says about the ledger.
type Receipt struct {
	ID     extensions.ID
	Ledger string // ledger id; "" = unknown
	Head   string // pinned; "" = none
}

// Verified is the result of checking the ledger.
type Verified struct {
	Ledger    string // its id; "" where there is none
	Events    int64
	Sandboxes int64
	Heads     []string // of every stream, to be pinned next time
	Findings  []string // empty = consistent, and in line with the evidence
	Notes     []string // what could not be checked, and why
}

// Verify checks the ledger's chain, rows and invariants, and that nothing in the evidence is missing from
// it. Findings are in the result. The error is for evidence that cannot be read or is none (KindInvalid),
// and for a ledger that cannot be read.
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
	exports := map[string]chain.Export{}
	var exported []ledger.Head
	for name, r := range ev.Exports {
		x, err := chain.ReadExport(r)
		if err != nil {
			return v, err
		}
		if len(x.Events)+len(x.Problems) == 0 {
			return v, extensions.Invalid("%s has no event, so there is nothing to verify",
				"use a complete file written by `sandboxer ledger export --format cloudevents`", name)
		}
		exports[name] = x
		exported = append(exported, x.Events...)
	}
	pins := slices.Clone(told)
	if l.ID() == "" && len(exported) > 0 { // anybody with the file can check that
		v.note("There is no ledger at %s: only the %d exported events were checked.", a.books.URL(), len(exported))
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
		for _, p := range append(x.Problems, x.CompareHeads(append(told, r.Heads...))...) {
			v.Findings = append(v.Findings, name+": "+p)
		}
	}
	for _, h := range r.Heads {
		v.Heads = append(v.Heads, h.Pin())
	}
	v.estimates(ctx, l)
	return v, nil
}

// estimates notes how many ends are estimates; what they settled is only as good as those. If they cannot
// be counted, the findings still stand.
func (v *Verified) estimates(ctx context.Context, l *ledger.Ledger) {
	rows, err := l.Usage(ctx, ledger.UsageFilter{})
	if extensions.IsKind(err, extensions.KindInternal) {
		v.Findings = append(v.Findings, "usage cannot be added up: "+err.Error())
	} else if err != nil {
		v.note("The lives with an unknown end could not be counted: %v.", err)
	}
	var lives, estimated int64
	for _, row := range rows {
		lives += row.Meters
		estimated += row.Estimated
	}
	if estimated > 0 {
		v.note("%d of %d settled lives ended at an unknown time: their charges use an estimated end.", estimated, lives)
	}
}

func (v *Verified) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// heads returns the heads in the pins and receipts.
func (v *Verified) heads(ev Evidence) ([]ledger.Head, error) {
	var out []ledger.Head
	for _, text := range ev.Pins {
		h, err := chain.ParsePin(text, v.Ledger)
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
		h, err := chain.ParsePin(rec.Head, rec.Ledger)
		if err != nil {
			v.Findings = append(v.Findings, fmt.Sprintf("the receipt of %s pins an invalid head", rec.ID))
			continue
		}
		out = append(out, h)
	}
	if bare > 0 {
		v.note("%d of %d receipts pin no head, so they prove nothing here.", bare, len(ev.Receipts))
	}
	return out, nil
}
