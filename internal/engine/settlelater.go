package engine

import (
	"context"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/book"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// settleLater notes an end for a later run and tells about it. id is that of
// the ledger to settle it in, and why the reason: nil = the ledger here does not
// know the sandbox. It never fails the destroy: what is not noted is settled
// too, at an estimated end, when a run with that ledger finds the sandbox gone.
func (e *Engine) settleLater(ctx context.Context, row ledger.Sandbox, id string, gone book.Ending, why error, report *DestroyReport) {
	report.unsettled = why
	if why == nil && id == "" && report.AlreadyGone {
		return // nothing says that any ledger waits for it
	}
	u := book.Noted{Ledger: e.book.URL(), LedgerID: id, ID: row.ID, Generation: row.Generation,
		EndedAt: gone.At, Source: gone.Source, Estimated: gone.Estimated, Usage: gone.Usage}
	told := fmt.Sprintf("Sandbox %s was ended. The ledger could not be written: %s.", row.ID, why)
	next := "The next run that can write the ledger settles it."
	if why == nil {
		u.Ledger = ""
		made := "it was made with another one"
		if id != "" {
			made = "it was made with the ledger " + id
		}
		told = fmt.Sprintf("Sandbox %s was ended. The ledger %s does not know it: %s, where what it cost is still open.", row.ID, e.book.URL(), made)
		next = "Its end is noted in " + e.book.Folder() + ": the next run that changes something with that ledger and this state folder settles it, for instance `sandboxer sweep`."
	}
	if err := e.book.NoteEnd(ctx, u); err != nil {
		next = "The next run with its ledger that finds it gone settles it at an estimated end (its true end could not be noted: " + err.Error() + ")."
	}
	report.Notices = append(report.Notices, Notice{Summary: "Ended, but not settled in the ledger", Detail: told + " " + next})
}
