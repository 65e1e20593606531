package daytonatest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
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
		"POST " + at + "/autoarchive/{interval}":  one(v.autoArchive),
		"POST " + at + "/stop":                    one(v.stop),
		"POST " + at + "/start":                   one(v.start),
		"POST " + at + "/pause":                   one(v.pause),
		"POST " + at + "/archive":                 one(v.archive),
		"POST " + at + "/resize":                  one(v.resize),
		"POST " + at + "/snapshot":                one(v.keep),
		"GET " + at + "/ports/{port}/preview-url": one(v.preview),
		"GET /snapshots":                          locked(v.listSnapshots),
		"GET /snapshots/{id}":                     locked(v.getSnapshot),
		"DELETE /snapshots/{id}":                  locked(v.deleteSnapshot),
		"POST /snapshots/{id}/activate":           locked(v.activate),
		"GET /object-storage/push-access":         locked(v.lend),
	}
	if v.cloud {
		operations["POST "+at+"/ttl/{ttlMinutes}"] = one(v.ttl)
	}
	return v.serve(v.api, "", operations)
}

// serve is a server of operations by their patterns below a prefix, each judged by the description.
func (v *Vendor) serve(by *vendortest.Description, prefix string, operations map[string]operation) *http.ServeMux {
	mux := v.Mux()
	for pattern, do := range operations {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+prefix+path, func(w http.ResponseWriter, r *http.Request) {
			v.Serve(w, r, by, pattern, func(out http.ResponseWriter, r *http.Request, body []byte) {
				var said any
				err := v.enters(r)
				if err == nil {
					said, err = do(r, body)
				}
				v.write(out, r, said, err)
			})
		})
	}
	return mux
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
	w.Header().Set("Date", v.clock.Now().UTC().Format(http.TimeFormat))
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
