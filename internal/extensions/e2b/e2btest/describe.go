package e2btest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// description judges requests and answers by what the vendor says of its interface.
type description struct{ doc *openapi3.T }

// The two descriptions are read once: that takes longer than most tests.
var (
	planeDescription  = sync.OnceValues(func() (*description, error) { return describe("openapi.yml", asServed) })
	daemonDescription = sync.OnceValues(func() (*description, error) { return describe("envd.yaml") })
)

// describe reads a description from the adapter's folder spec, and gets stricter than it where it is silent: a
// field that it does not name is a mistake.
func describe(name string, changes ...func(*openapi3.T)) (*description, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "internal/extensions/e2b/spec", name))
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		change(doc)
	}
	for _, s := range doc.Components.Schemas {
		if of := s.Value; len(of.Properties) > 0 && of.AdditionalProperties.Has == nil && of.AdditionalProperties.Schema == nil {
			of.AdditionalProperties.Has = new(bool)
		}
	}
	return &description{doc: doc}, doc.Validate(context.Background())
}

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

// call is one request to the operation that a pattern of http.ServeMux names.
func (d *description) call(r *http.Request, pattern string, body []byte) (*openapi3filter.RequestValidationInput, error) {
	_, path, _ := cutPattern(pattern)
	item := d.doc.Paths.Value(path)
	if item == nil || item.GetOperation(r.Method) == nil {
		return nil, fmt.Errorf("the vendor's description has no %s %s", r.Method, path)
	}
	op := item.GetOperation(r.Method)
	in := &openapi3filter.RequestValidationInput{Request: withBody(r, body), PathParams: map[string]string{}, QueryParams: r.URL.Query(),
		Route: &routers.Route{Spec: d.doc, Path: path, PathItem: item, Method: r.Method, Operation: op},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
			MultiError: true}}
	known := map[string]bool{}
	for _, p := range append(op.Parameters, item.Parameters...) {
		known[p.Value.Name] = true
		if p.Value.In == openapi3.ParameterInPath {
			in.PathParams[p.Value.Name] = r.PathValue(p.Value.Name)
		}
	}
	for name := range maps.Keys(in.QueryParams) {
		if !known[name] {
			return nil, fmt.Errorf("%s %s knows no query parameter %q", r.Method, path, name)
		}
	}
	if op.RequestBody == nil && len(body) > 0 {
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
