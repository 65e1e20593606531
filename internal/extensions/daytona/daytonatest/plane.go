package daytonatest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// failure is what the vendor answers to what it refuses.
type failure struct {
	status  int
	message string
	header  http.Header
}

func (f *failure) Error() string { return f.message }

func fail(status int, message string) *failure { return &failure{status: status, message: message} }

// operation does one call; its body was read and judged. out is sent as JSON, or as it is if it is raw.
type operation func(r *http.Request, body []byte) (out any, err error)

type raw []byte

// plane is the API.
func (v *Vendor) plane() http.Handler {
	locked := func(do operation) operation {
		return func(r *http.Request, body []byte) (any, error) {
			v.expire()
			v.mu.Lock()
			defer v.mu.Unlock()
			return do(r, body)
		}
	}
	one := func(do func(*sandbox, *http.Request, []byte) (any, error)) operation {
		return locked(func(r *http.Request, body []byte) (any, error) {
			s := v.named(r.PathValue("sandboxIdOrName"))
			if s == nil {
				return nil, fail(http.StatusNotFound, "Sandbox with ID or name "+r.PathValue("sandboxIdOrName")+" not found")
			}
			return do(s, r, body)
		})
	}
	const at = "/sandbox/{sandboxIdOrName}"
	operations := map[string]operation{
		"POST /sandbox":                           locked(v.create),
		"GET /sandbox":                            locked(v.list),
		"GET " + at:                               one(v.get),
		"DELETE " + at:                            one(v.destroy),
		"POST " + at + "/autostop/{interval}":     one(v.autoStop),
		"POST " + at + "/autodelete/{interval}":   one(v.autoDelete),
		"GET " + at + "/ports/{port}/preview-url": one(v.preview),
	}
	if v.cloud {
		operations["POST "+at+"/ttl/{ttlMinutes}"] = one(v.ttl)
	}
	return v.serve(v.api, "", operations)
}

// serve is a server of operations by their patterns below a prefix, each judged by the description.
func (v *Vendor) serve(by *description, prefix string, operations map[string]operation) *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, do := range operations {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+prefix+path, func(w http.ResponseWriter, r *http.Request) { v.call(w, r, by, pattern, do) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		v.t.Errorf("the fake of Daytona has no %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
	})
	return mux
}

// call serves one request, and judges it and its answer.
func (v *Vendor) call(w http.ResponseWriter, r *http.Request, by *description, pattern string, do operation) {
	body, err := io.ReadAll(r.Body)
	v.mu.Lock()
	v.requests = append(v.requests, Request{On: pattern, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header.Clone(),
		Body: body})
	v.mu.Unlock()
	if err != nil {
		return // the client went away
	}
	fault := v.fault(pattern)
	if fault.strikes(w, false) {
		return
	}
	_, path, _ := strings.Cut(pattern, " ")
	in, err := by.call(r, path, body)
	if err != nil {
		v.t.Errorf("a request that Daytona's description does not allow: %s %s %.400s: %v", r.Method, r.URL, body, err)
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	out := httptest.NewRecorder()
	var said any
	if err = v.enters(r); err == nil {
		said, err = do(withBody(r, body), body)
	}
	v.write(out, r, said, err)
	if err := by.answer(r.Context(), in, out.Code, out.Header(), out.Body.Bytes()); err != nil {
		v.t.Errorf("an answer that Daytona's description does not allow: %s: %d %.400s: %v", pattern, out.Code, out.Body, err)
	}
	if fault.strikes(w, true) {
		return
	}
	for name, values := range out.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(out.Code)
	_, _ = io.Copy(w, bytes.NewReader(out.Body.Bytes()))
}

// enters refuses who has no credential.
func (v *Vendor) enters(r *http.Request) error {
	switch r.Header.Get("Authorization") {
	case "Bearer " + v.Key:
		return nil
	case "Bearer " + v.JWT:
		if r.Header.Get("X-Daytona-Organization-ID") == v.Organization {
			return nil
		}
	}
	return fail(http.StatusUnauthorized, "Invalid credentials")
}

func (v *Vendor) write(w http.ResponseWriter, r *http.Request, out any, err error) {
	if bytes, ok := out.(raw); ok && err == nil {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(bytes)
		return
	}
	status := http.StatusOK
	if err != nil {
		f, known := err.(*failure) //nolint:errorlint // it is made here and never wrapped
		if !known {
			v.t.Errorf("the fake of Daytona is broken: %v", err)
			f = fail(http.StatusInternalServerError, err.Error())
		}
		status, out = f.status, map[string]any{"statusCode": f.status, "message": f.message, "error": http.StatusText(f.status),
			"path": r.URL.Path, "timestamp": v.clock.Now().UTC().Format(time.RFC3339)}
		for name, values := range f.header {
			w.Header()[name] = values
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		v.t.Errorf("the fake of Daytona cannot say %v: %v", out, err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
