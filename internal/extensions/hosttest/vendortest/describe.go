package vendortest

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

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// Description judges requests and answers by what a vendor says of its interface. Reading one takes longer than most
// tests, so a fake does it once.
type Description struct {
	Doc *openapi3.T
	// Forms are excused: what the parts of a form are is not described.
	Forms bool
}

// Describe reads a description (OpenAPI 3 or Swagger 2) from a file of this module, as changes leave it. It gets stricter
// than the file where that is silent: a field that it does not name is a mistake.
func Describe(file string, changes ...func(*openapi3.T)) (*Description, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, file))
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
	for _, change := range changes {
		change(doc)
	}
	for _, s := range doc.Components.Schemas {
		if of := s.Value; len(of.Properties) > 0 && of.AdditionalProperties.Has == nil && of.AdditionalProperties.Schema == nil {
			of.AdditionalProperties.Has = new(bool)
		}
	}
	return &Description{Doc: doc}, doc.Validate(context.Background(), openapi3.DisableExamplesValidation())
}

// Root is the folder of this module: tests run in one of its folders.
func Root() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.Join(err, errors.New("the test runs outside the module's folder, where the vendor's description is"))
}

// Only cuts fields to those that a schema of the description names: versions differ.
func (d *Description) Only(schema string, fields map[string]any) map[string]any {
	known := d.Doc.Components.Schemas[schema].Value.Properties
	for name := range fields {
		if _, ok := known[name]; !ok {
			delete(fields, name)
		}
	}
	return fields
}

// call judges one request to the operation that a pattern of http.ServeMux names.
func (d *Description) call(r *http.Request, on string, body []byte) (*openapi3filter.RequestValidationInput, error) {
	_, path, _ := strings.Cut(on, " ")
	item := d.Doc.Paths.Value(path)
	if item == nil || item.GetOperation(r.Method) == nil {
		return nil, fmt.Errorf("the vendor's description has no %s %s", r.Method, path)
	}
	op := item.GetOperation(r.Method)
	excused := d.Forms && strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/")
	in := &openapi3filter.RequestValidationInput{Request: withBody(r, body), PathParams: map[string]string{}, QueryParams: r.URL.Query(),
		Route: &routers.Route{Spec: d.Doc, Path: path, PathItem: item, Method: r.Method, Operation: op},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
			MultiError: true, ExcludeRequestBody: excused}}
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
	if op.RequestBody == nil && len(body) > 0 && !excused {
		return nil, fmt.Errorf("%s %s takes no body", r.Method, path)
	}
	return in, openapi3filter.ValidateRequest(r.Context(), in)
}

// answer judges what a fake says in answer to a call.
func (d *Description) answer(ctx context.Context,
	in *openapi3filter.RequestValidationInput, status int, header http.Header, body []byte) error {
	return openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: status,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), Options: in.Options})
}
