package daytonatest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// description judges requests and answers by what the vendor says of its interface.
type description struct{ doc *openapi3.T }

// The descriptions are read once: that takes longer than most tests.
var (
	cloudAPI     = sync.OnceValues(func() (*description, error) { return describe("api.json") })
	cloudToolbox = sync.OnceValues(func() (*description, error) { return describe("toolbox.json") })
	selfAPI      = sync.OnceValues(func() (*description, error) { return describe("oss-v0.190.0-api.yaml") })
	selfToolbox  = sync.OnceValues(func() (*description, error) { return describe("oss-v0.190.0-toolbox.yaml") })
)

func descriptions(cloud bool) (api, toolbox *description, err error) {
	readAPI, readToolbox := selfAPI, selfToolbox
	if cloud {
		readAPI, readToolbox = cloudAPI, cloudToolbox
	}
	api, err1 := readAPI()
	toolbox, err2 := readToolbox()
	return api, toolbox, errors.Join(err1, err2)
}

// describe reads a description from the adapter's folder spec, and gets stricter than it where it is silent: a field that it does
// not name is a mistake. Where it names no errors, the vendor's own form of them is added.
func describe(name string) (*description, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "internal/extensions/daytona/spec", name))
	if err != nil {
		return nil, err
	}
	var doc *openapi3.T
	if bytes.Contains(text[:min(len(text), 400)], []byte(`"swagger"`)) {
		var old openapi2.T
		if err := json.Unmarshal(text, &old); err != nil {
			return nil, err
		}
		doc, err = openapi2conv.ToV3(&old)
	} else {
		doc, err = openapi3.NewLoader().LoadFromData(text)
	}
	if err != nil {
		return nil, err
	}
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
	for _, s := range doc.Components.Schemas {
		if of := s.Value; len(of.Properties) > 0 && of.AdditionalProperties.Has == nil && of.AdditionalProperties.Schema == nil {
			of.AdditionalProperties.Has = new(bool)
		}
	}
	return &description{doc: doc}, doc.Validate(context.Background(), openapi3.DisableExamplesValidation())
}

// failureForm is the vendor's form of errors.
var failureForm = &openapi3.ResponseRef{Value: openapi3.NewResponse().WithDescription("an error").WithJSONSchema(
	openapi3.NewObjectSchema().WithProperty("statusCode", openapi3.NewIntegerSchema()).WithProperty("message", openapi3.NewStringSchema()).
		WithProperty("path", openapi3.NewStringSchema()).WithProperty("timestamp", openapi3.NewStringSchema()).
		WithProperty("error", openapi3.NewStringSchema()).WithRequired([]string{"statusCode", "message"}))}

// moduleRoot is where this module's files are: tests run in one of its folders.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.Join(err, errors.New("the test runs outside the module's folder, where the vendor's description is"))
}

// only cuts fields to those that a schema of the description names: versions differ.
func (d *description) only(schema string, fields map[string]any) map[string]any {
	known := d.doc.Components.Schemas[schema].Value.Properties
	for name := range fields {
		if _, ok := known[name]; !ok {
			delete(fields, name)
		}
	}
	return fields
}

// call is one request to the operation of a path of the description.
func (d *description) call(r *http.Request, path string, body []byte) (*openapi3filter.RequestValidationInput, error) {
	item := d.doc.Paths.Value(path)
	if item == nil || item.GetOperation(r.Method) == nil {
		return nil, fmt.Errorf("the vendor's description has no %s %s", r.Method, path)
	}
	op := item.GetOperation(r.Method)
	r = withBody(r, body)
	form := strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") // its parts are nowhere described
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: map[string]string{}, QueryParams: r.URL.Query(),
		Route: &routers.Route{Spec: d.doc, Path: path, PathItem: item, Method: r.Method, Operation: op},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
			MultiError: true, ExcludeRequestBody: form}}
	known := map[string]bool{}
	for _, p := range append(op.Parameters, item.Parameters...) {
		known[p.Value.Name] = true
		if p.Value.In == openapi3.ParameterInPath {
			in.PathParams[p.Value.Name] = r.PathValue(p.Value.Name)
		}
	}
	for name := range in.QueryParams {
		if !known[name] {
			return nil, fmt.Errorf("%s %s knows no query parameter %q", r.Method, path, name)
		}
	}
	if op.RequestBody == nil && len(body) > 0 && !form {
		return nil, fmt.Errorf("%s %s takes no body", r.Method, path)
	}
	return in, openapi3filter.ValidateRequest(r.Context(), in)
}

// answer judges what the fake says in answer to a call.
func (d *description) answer(ctx context.Context,
	in *openapi3filter.RequestValidationInput, status int, header http.Header, body []byte) error {
	return openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: status,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), Options: in.Options})
}

func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}
