package sqlstore

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"io"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Options configure Open. The zero value opens for writing.
type Options struct {
	// ReadOnly creates and changes nothing; a missing ledger reads as empty.
	ReadOnly bool
	// Now is the clock for events and defaults; nil means time.Now.
	Now func() time.Time
	// Rand is the source of a new ledger's id; nil means crypto/rand.
	Rand io.Reader
	// Charges returns the charges of a closing meter, given who pays for its life and what is held for it;
	// nil means [bank.Charges].
	Charges func(m bank.Meter, usage *extensions.Usage, payer string, held []bank.Transfer) ([]bank.Charge, error)
	// Earlier returns evidence, other than the files beside it, that a ledger existed at the address
	// before; "" or a nil func means none. It is called for an empty file, which with evidence counts as
	// damage.
	Earlier func() string
	// LockTimeout limits the wait for other writers; 0 means 60 s.
	LockTimeout time.Duration
	// Lease is how long a holder counts as alive after its last renewal, where machines share the ledger; 0
	// means 30 s, which is also the maximum.
	Lease time.Duration
}

func (o Options) filled() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Charges == nil {
		o.Charges = bank.Charges
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	o.LockTimeout = cmp.Or(o.LockTimeout, time.Minute)
	return o
}

// newID returns a random id for a new ledger.
func (o Options) newID() (string, error) {
	b := make([]byte, 16)
	if _, err := io.ReadFull(o.Rand, b); err != nil {
		return "", fault.Errorf(extensions.KindInternal, "drawing a name for the ledger: %w", err)
	}
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)), nil
}
