// Package export sends a ledger's events and charges to other systems: events as CloudEvents 1.0 to an
// HTTP endpoint or a file, charges as FOCUS 1.2, CSV or JSON. It only reads the ledger, except for
// recording how far an endpoint has received a stream.
package export

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Ledger is the part of *ledger.Ledger that an export needs.
type Ledger interface {
	ID() string
	Events(ctx context.Context, stream string, fromSeq int64, limit int) ([]ledger.Event, error)
	EachCharge(ctx context.Context, f ledger.UsageFilter, yield func(ledger.ChargeRow) error) error
	Outbox(ctx context.Context, sink, stream string) (ledger.Outbox, error)
	MoveOutbox(ctx context.Context, step ledger.OutboxStep) (ledger.Outbox, error)
}
