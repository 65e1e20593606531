package sqlstore

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
)

func (s *store) Events(ctx context.Context, stream string, fromSeq int64, limit int) ([]chain.Event, error) {
	tail, args := "WHERE stream = ? AND seq >= ? ORDER BY seq", []any{stream, fromSeq}
	if limit > 0 {
		tail, args = tail+" LIMIT ?", append(args, limit)
	}
	rows, err := readAll(ctx, s, "events", eventFields, tail, args...)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].CloudEvent, err = rows[i].Shown(); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func eventFields(e *chain.Event) []field { return eventRow(e, new(bool)) }

func (s *store) Head(ctx context.Context, stream string) (chain.Head, error) {
	h := chain.Head{Ledger: s.id, Stream: stream}
	_, err := readAll(ctx, s, "streams", func(*struct{}) []field {
		return []field{number("seq", &h.Seq), text("hash", &h.Hash)}
	}, "WHERE stream = ?", stream)
	return h, err
}
