package bank

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

// Measured is what a place measured of a life that runs.
type Measured struct {
	Usage *extensions.Usage // nil = nothing: what it used is estimated by time
	Why   string            // why something is estimated by time all the same; "" = nothing is
}
