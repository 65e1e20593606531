package life

import (
	"encoding/json"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// mustJSON marshals the engine's own views, which cannot fail.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

// ledgerQuote converts a quote to the ledger's form.
func ledgerQuote(q meter.Quote) *ledger.Quote {
	return &ledger.Quote{Body: mustJSON(q), Prices: priceBooks(q)}
}

// priceBooks returns the price books of a quote; none if nothing is known.
func priceBooks(q meter.Quote) []ledger.PriceBook {
	s := q.Snapshot
	if s.Basis == meter.BasisUnknown {
		return nil
	}
	return []ledger.PriceBook{{Source: s.Source, Version: s.BookVersion, AsOf: s.AsOf, Body: json.RawMessage(s.Encode())}}
}
