package engine

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
)

// LedgerExists returns nil if the ledger has anything, KindNotFound if there is none yet, else why it cannot be
// read.
func (e *Engine) LedgerExists(ctx context.Context) error { return e.book.Exists(ctx) }

// LedgerTime returns the time that decides what is overdue; see [book.Book.Now].
func (e *Engine) LedgerTime() time.Time { return e.book.Now() }

// SharedLedger reports whether the address leads, or may lead, to another machine.
func SharedLedger(address string) bool { return sqlstore.Shared(address) }

// CheckLedger checks the form of a ledger's address. It opens neither the ledger nor files that the address
// names.
func CheckLedger(address string) error {
	err := sqlstore.CheckURL(address)
	var file *fs.PathError
	if errors.As(err, &file) {
		return nil
	}
	return err
}

// Warnings returns the risks of the configuration as a whole: catalog entries that replace others, a ledger
// that an ephemeral runner loses.
func (e *Engine) Warnings() []notice.Notice {
	var out []notice.Notice
	if len(e.catalog.Notices) > 0 {
		out = append(out, notice.Notice{Summary: "The catalog", Detail: strings.Join(e.catalog.Notices, "\n")})
	}
	if e.opts.Ledger == "" && e.getenv("CI") == "true" {
		out = append(out, notice.Notice{Summary: "The ledger is on this machine only",
			Detail: "CI is set: an ephemeral runner loses a local ledger with the records of its sandboxes. They still expire on their own; set " +
				"the provider's ledger to a lasting place."})
	}
	return out
}

// LedgerURL returns the ledger's address without its password.
func (e *Engine) LedgerURL() string { return e.book.URL() }
