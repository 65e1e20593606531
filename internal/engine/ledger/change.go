package ledger

import (
	"fmt"
	"slices"
)

// Kind returns the event type that the change implies, for a note that names none.
func (c Change) Kind(row Sandbox) string {
	switch {
	case c.To != "":
		return "sandbox." + string(row.State)
	case c.Intent != nil:
		return "sandbox." + string(c.Intent.Kind)
	case c.Finish != nil:
		return "sandbox.finished"
	}
	return "sandbox.changed"
}

// Mismatch says how the row differs from e; "" means that it matches.
func (e Expect) Mismatch(row Sandbox, open *Intent) string {
	switch {
	case len(e.States) > 0 && !slices.Contains(e.States, row.State):
		return fmt.Sprintf("it is %s", row.State)
	case e.Generation != 0 && e.Generation != row.Generation:
		return fmt.Sprintf("its generation is %d, not %d: it was taken over or recreated", row.Generation, e.Generation)
	case e.Fence != 0 && e.Fence != row.Fence:
		return fmt.Sprintf("a newer operation has begun (fence %d, not %d)", row.Fence, e.Fence)
	case e.Holder != "" && (open == nil || open.Holder != e.Holder):
		return "another run has taken over its operation"
	case e.NoIntent && open != nil:
		return fmt.Sprintf("%s is under way", open.Kind)
	}
	return ""
}

// Mismatch says how the row differs from c.Expect, or why it cannot change state; "" means neither.
func (c SnapshotChange) Mismatch(row Snapshot, open *Intent) string {
	switch e := c.Expect; {
	case len(e.States) > 0 && !slices.Contains(e.States, row.State):
		return fmt.Sprintf("it is %s", row.State)
	case e.Fence != 0 && e.Fence != row.Fence:
		return fmt.Sprintf("a newer operation has begun (fence %d, not %d)", row.Fence, e.Fence)
	case e.Holder != "" && (open == nil || open.Holder != e.Holder):
		return "another run has taken over its operation"
	case c.To != "" && c.To != row.State && !slices.Contains(snapshotEdges[row.State], c.To):
		return fmt.Sprintf("%s cannot become %s", row.State, c.To)
	}
	return ""
}
