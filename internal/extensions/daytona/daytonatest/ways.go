package daytonatest

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// Fault is a failure of the way to the vendor, to its API or to a toolbox ("POST /process/execute").
type Fault = vendortest.Fault

// When a fault strikes.
const (
	Before = vendortest.Before
	After  = vendortest.After
)

// Killer stands before a vendor's API and its toolboxes.
type Killer struct {
	vendortest.Killer
	APIURL string
}

// Killer returns one that kills nobody until Start. It must be there before the first sandbox is.
func (v *Vendor) Killer(t testing.TB) *Killer {
	t.Helper()
	exttest.Alone(t)
	k := &Killer{}
	k.APIURL, v.ToolboxURL = k.Front(t, v.APIURL), k.Front(t, v.ToolboxURL)
	return k
}
