package e2btest

import (
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

const spec = "internal/extensions/e2b/spec/"

// The two descriptions are read once.
var (
	planeDescription  = sync.OnceValues(func() (*vendortest.Description, error) { return vendortest.Describe(spec+"openapi.yml", asServed) })
	daemonDescription = sync.OnceValues(func() (*vendortest.Description, error) { return vendortest.Describe(spec + "envd.yaml") })
)

// asServed adds the answers that the vendor's server gives to operations whose description forgets them.
func asServed(doc *openapi3.T) {
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			for _, code := range []string{"400", "404", "409", "429"} {
				if op.Responses.Value(code) == nil {
					op.Responses.Set(code, doc.Components.Responses[code])
				}
			}
		}
	}
}
