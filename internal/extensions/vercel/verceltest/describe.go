package verceltest

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

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// description judges requests and answers by what is known of the vendor's interface.
type description struct{ doc *openapi3.T }

// described is read once: that takes longer than most tests. It is stricter than the file: a field that it does not name is a
// mistake.
var described = sync.OnceValues(func() (*description, error) {
	for _, media := range []string{"application/x-ndjson", "application/gzip"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "internal/extensions/vercel/spec/openapi.yaml"))
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	for _, s := range doc.Components.Schemas {
		if of := s.Value; len(of.Properties) > 0 && of.AdditionalProperties.Has == nil && of.AdditionalProperties.Schema == nil {
			of.AdditionalProperties.Has = new(bool)
		}
	}
	return &description{doc: doc}, doc.Validate(context.Background())
})

// moduleRoot is where this module's files are: tests run in one of its folders.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.Join(err, errors.New("the test runs outside the module's folder, where the description is"))
}

// call is one request to the operation that a pattern of http.ServeMux names.
func (d *description) call(r *http.Request, pattern string, body []byte) (*openapi3filter.RequestValidationInput, error) {
	_, path, _ := strings.Cut(pattern, " ")
	item := d.doc.Paths.Value(path)
	if item == nil || item.GetOperation(r.Method) == nil {
		return nil, fmt.Errorf("the description has no %s %s", r.Method, path)
	}
	op := item.GetOperation(r.Method)
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	in := &openapi3filter.RequestValidationInput{Request: again, PathParams: map[string]string{}, QueryParams: r.URL.Query(),
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
	for name := range in.QueryParams {
		if !known[name] {
			return nil, fmt.Errorf("%s %s knows no query parameter %q", r.Method, path, name)
		}
	}
	if op.RequestBody == nil && len(body) > 0 {
		return nil, fmt.Errorf("%s %s takes no body", r.Method, path)
	}
	return in, openapi3filter.ValidateRequest(r.Context(), in)
}

// answer judges what the fake says in answer to a call, a stream of a command line by line.
func (d *description) answer(ctx context.Context, in *openapi3filter.RequestValidationInput, status int,
	header http.Header, body []byte) error {
	if header.Get("Content-Type") == ndjson {
		for line := range bytes.Lines(body) {
			var said map[string]any
			err := json.Unmarshal(line, &said)
			if c, ok := said["command"]; ok && err == nil {
				err = d.doc.Components.Schemas["Command"].Value.VisitJSON(c)
			}
			if err != nil {
				return err
			}
		}
	}
	return openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: status,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), Options: in.Options})
}

const ndjson = "application/x-ndjson"
