// Package export carries a ledger's events and charges to others: events as
// CloudEvents 1.0 to an HTTP endpoint or a file, charges as FOCUS 1.2, CSV or
// JSON. It only reads the ledger, but for how far an endpoint has got.
package export

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Ledger is what an export needs of one; see ledger.Ledger.
type Ledger interface {
	ID() string
	Events(ctx context.Context, stream string, fromSeq int64, limit int) ([]ledger.Event, error)
	EachCharge(ctx context.Context, f ledger.UsageFilter, yield func(ledger.ChargeRow) error) error
	Outbox(ctx context.Context, sink, stream string) (ledger.Outbox, error)
	MoveOutbox(ctx context.Context, step ledger.OutboxStep) (ledger.Outbox, error)
}
