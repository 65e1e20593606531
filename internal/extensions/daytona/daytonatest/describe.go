package daytonatest

import (
	"errors"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// The descriptions are read once.
var (
	cloudAPI     = described("api.json")
	cloudToolbox = described("toolbox.json")
	selfAPI      = described("oss-v0.190.0-api.yaml")
	selfToolbox  = described("oss-v0.190.0-toolbox.yaml")
)

func described(name string) func() (*vendortest.Description, error) {
	return sync.OnceValues(func() (*vendortest.Description, error) {
		d, err := vendortest.Describe("internal/extensions/daytona/spec/"+name, asServed)
		if err == nil {
			d.Forms = true
		}
		return d, err
	})
}

func descriptions(cloud bool) (api, toolbox *vendortest.Description, err error) {
	readAPI, readToolbox := selfAPI, selfToolbox
	if cloud {
		readAPI, readToolbox = cloudAPI, cloudToolbox
	}
	api, err1 := readAPI()
	toolbox, err2 := readToolbox()
	return api, toolbox, errors.Join(err1, err2)
}

// asServed adds the vendor's own form of errors where a description names none.
func asServed(doc *openapi3.T) {
	doc.Paths.Delete("/sandbox/{sandboxId}/secrets") // a runner's, in conflict with the one by name
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			for code := range op.Responses.Map() { // the errors of files would be files, too
				if code[0] == '4' || code[0] == '5' {
					op.Responses.Delete(code)
				}
			}
			op.Responses.Set("default", failureForm)
		}
	}
}

// failureForm is the vendor's form of errors.
var failureForm = &openapi3.ResponseRef{Value: openapi3.NewResponse().WithDescription("an error").WithJSONSchema(
	openapi3.NewObjectSchema().WithProperty("statusCode", openapi3.NewIntegerSchema()).WithProperty("message", openapi3.NewStringSchema()).
		WithProperty("path", openapi3.NewStringSchema()).WithProperty("timestamp", openapi3.NewStringSchema()).
		WithProperty("error", openapi3.NewStringSchema()).WithRequired([]string{"statusCode", "message"}))}
