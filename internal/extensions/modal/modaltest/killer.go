package modaltest

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// Killer is a way to the vendor that kills a process at its nth call.
type Killer struct {
	vendortest.Killer
	URL string
}

// Killer returns one that kills nobody until Start.
func (v *Vendor) Killer(t testing.TB) *Killer {
	t.Helper()
	exttest.Alone(t)
	k := &Killer{}
	f := v.newFront(&k.Killer)
	k.URL = f.planeURL
	t.Cleanup(f.Stop)
	return k
}
