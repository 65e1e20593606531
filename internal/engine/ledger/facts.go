package ledger

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Facts are what a probe found at one place: a binding, for an account, on a host.
// One place's facts say nothing about another's.
type Facts struct {
	Account   string
	Extension string // binding id
	Host      string // name; "" for a vendor's account
	// HostRef and Config identify the probed place: the host's arguments, and the digest of the binding's
	// config. Facts with other values belong to another place.
	HostRef  string
	Config   string
	Found    extensions.Facts
	ProbedAt time.Time
}
