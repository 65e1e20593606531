package tenant

import (
	"context"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// Verify implements ledger.Ledger. The whole ledger is checked; what is wrong
// elsewhere in it is counted and not told.
func (v *view) Verify(ctx context.Context, pinned ...ledger.Head) (ledger.Report, error) {
	whole, err := v.base.Verify(ctx)
	if err != nil {
		return ledger.Report{}, err
	}
	head, err := v.base.Head(ctx, v.org)
	if err != nil {
		return ledger.Report{}, err
	}
	own := ledger.Report{Ledger: whole.Ledger, Events: head.Seq}
	if head.Seq > 0 {
		own.Heads = []ledger.Head{head}
	}
	rows, err := v.List(ctx, ledger.Filter{})
	own.Sandboxes = int64(len(rows))
	if n := len(whole.Problems); n > 0 {
		own.Problems = append(own.Problems, plural(n)+", which its owner sees with `sandboxer ledger verify`")
	}
	for _, p := range pinned {
		if p.Seq == 0 || err != nil {
			continue
		}
		var problem string
		problem, err = v.pinned(ctx, p)
		if problem != "" {
			own.Problems = append(own.Problems, problem)
		}
	}
	return own, err
}

// pinned says what is wrong with a head that was told earlier: it has to be in
// the chain still.
func (v *view) pinned(ctx context.Context, p ledger.Head) (problem string, err error) {
	if p.Ledger != v.ID() {
		return fmt.Sprintf("a receipt is of another ledger (%s, this is %s)", p.Ledger, v.ID()), nil
	}
	var at []ledger.Event
	if p.Stream == v.org {
		if at, err = v.base.Events(ctx, p.Stream, p.Seq, 1); err != nil {
			return "", err
		}
	}
	if len(at) == 1 && at[0].Seq == p.Seq && at[0].ID == p.Hash {
		return "", nil
	}
	return fmt.Sprintf("event %d of stream %q (%.12s) is in a receipt and not in the ledger: events were cut off or rewritten", p.Seq, p.Stream, p.Hash), nil
}

func plural(n int) string {
	if n == 1 {
		return "the ledger has a finding"
	}
	return fmt.Sprintf("the ledger has %d findings", n)
}
