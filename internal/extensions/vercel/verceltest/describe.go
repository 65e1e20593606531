package verceltest

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

const ndjson = "application/x-ndjson"

// described is read once.
var described = sync.OnceValues(func() (*vendortest.Description, error) {
	for _, media := range []string{ndjson, "application/gzip"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}
	return vendortest.Describe("internal/extensions/vercel/spec/openapi.yaml")
})

// judgeLines judges a stream of a command: the description has no form for its lines.
func (v *Vendor) judgeLines(stream []byte) {
	for line := range bytes.Lines(stream) {
		var said map[string]any
		err := json.Unmarshal(line, &said)
		if c, ok := said["command"]; ok && err == nil {
			err = v.api.Doc.Components.Schemas["Command"].Value.VisitJSON(c)
		}
		if err != nil {
			v.t.Errorf("a line that Vercel's description does not allow: %.400s: %v", line, err)
		}
	}
}
