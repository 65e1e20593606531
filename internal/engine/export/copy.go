package export

import (
	"context"
	"io"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// eventPage is how many events are read at a time.
const eventPage = 500

// Copy writes the stream's events, one CloudEvent per line, as chain.ParseEvent reads them, and returns
// their number. It writes the chain without gaps, from the first event at or after from up to the next one
// at or after to; zero times are no bounds.
func Copy(ctx context.Context, l Ledger, stream string, from, to time.Time, w io.Writer) (n int64, err error) {
	var begun bool
	for next := int64(1); ; {
		events, err := l.Events(ctx, stream, next, eventPage)
		if err != nil || len(events) == 0 {
			return n, err
		}
		for _, e := range events {
			begun = begun || !e.Time.Before(from)
			if !begun {
				continue
			}
			if !to.IsZero() && !e.Time.Before(to) {
				return n, nil
			}
			if err := line(w, e); err != nil {
				return n, err
			}
			n++
		}
		next = events[len(events)-1].Seq + 1
	}
}

func line(w io.Writer, e ledger.Event) error {
	_, err := w.Write(append(append([]byte{}, e.CloudEvent...), '\n'))
	return err
}
