package export

import (
	"bytes"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
)

func TestACopyIsTheChain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	l, c := newLedger(t)
	lives(t, l, 101) // more than are read at a time
	middle := c.now()
	c.pass(time.Hour)
	lives(t, l, 0)
	lived{account: "acme/app", name: "later", from: start, to: start.Add(time.Hour), rates: bookRates}.live(t, l)
	later := c.now()
	c.pass(-2 * time.Hour) // a clock that was set back makes no gap
	lived{account: "acme/app", name: "last", from: start, to: start.Add(time.Hour), rates: bookRates}.live(t, l)
	events := recorded(t, l)
	for name, part := range map[string]struct {
		from, to    time.Time
		first, last int64
	}{
		"all":          {time.Time{}, time.Time{}, 1, 515},
		"the end":      {middle, time.Time{}, 506, 515},
		"the start":    {time.Time{}, middle, 1, 505},
		"in between":   {middle, later, 506, 515},
		"nothing":      {later.Add(time.Hour), time.Time{}, 1, 0},
		"nothing, too": {time.Time{}, start, 1, 0},
	} {
		var b bytes.Buffer
		n, err := Copy(ctx, l, "acme", part.from, part.to, &b)
		if err != nil || n != part.last-part.first+1 {
			t.Errorf("%s: %d events, %v", name, n, err)
			continue
		}
		lines := bytes.Split(bytes.TrimSuffix(b.Bytes(), []byte("\n")), []byte("\n"))
		for i := range n {
			e, id, err := chain.ParseEvent(lines[i])
			want := events[part.first-1+i]
			if err != nil || id != l.ID() || e.ID != want.ID || e.PrevHash != want.PrevHash || e.Seq != want.Seq {
				t.Fatalf("%s: line %d: %v", name, i, err)
			}
		}
	}
}
