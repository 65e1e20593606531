package openshelltest

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// Killer is a way to the gateway that kills a process at its nth call.
type Killer struct {
	vendortest.Killer
	URL string
}

// Killer returns one that kills nobody until Start.
func (g *Gateway) Killer(t testing.TB) *Killer {
	t.Helper()
	exttest.Alone(t)
	k := &Killer{}
	f, url := g.newFront(&k.Killer)
	k.URL = url
	t.Cleanup(f.Stop)
	return k
}
