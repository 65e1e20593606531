package e2btest

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// Fault is a failure of the way to the vendor. A call into a sandbox is "POST /process.Process/Start" and so on,
// "GET /files", "POST /files".
type Fault = vendortest.Fault

// When a fault strikes.
const (
	Before = vendortest.Before
	After  = vendortest.After
)

// Killer stands before both servers of a vendor.
type Killer struct {
	vendortest.Killer
	APIURL, SandboxURL string
}

// Killer returns one that kills nobody until Start.
func (v *Vendor) Killer(t testing.TB) *Killer {
	t.Helper()
	exttest.Alone(t)
	k := &Killer{}
	k.APIURL, k.SandboxURL = k.Front(t, v.APIURL), k.Front(t, v.SandboxURL)
	return k
}
