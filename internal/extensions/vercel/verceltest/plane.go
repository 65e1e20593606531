package verceltest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// failure is what the vendor's API answers to what it refuses.
type failure struct {
	status     int
	code, text string
	header     http.Header
}

func (f *failure) Error() string { return f.text }

func fail(status int, code, text string) *failure {
	return &failure{status: status, code: code, text: text}
}

// answer is a successful one: JSON, or bytes of a media type.
type answer struct {
	body  any
	media string
	raw   []byte
}

type operation func(*http.Request, []byte) (answer, error)

const (
	sessions  = "/v2/sandboxes/sessions/{sessionId}"
	snapshots = "/v2/sandboxes/snapshots/{snapshotId}"
)

// operations are those that the fake has, by pattern of http.ServeMux. They run under the vendor's lock.
func (v *Vendor) operations() map[string]operation {
	return map[string]operation{
		"POST /v3/sandboxes":                   v.create,
		"POST /v2/sandboxes":                   v.create,
		"GET /v2/sandboxes":                    v.list,
		"GET /v2/sandboxes/{name}":             v.get,
		"PATCH /v2/sandboxes/{name}":           v.patch,
		"DELETE /v2/sandboxes/{name}":          v.remove,
		"GET " + sessions:                      v.getSession,
		"POST " + sessions + "/stop":           v.stop,
		"POST " + sessions + "/extend-timeout": v.extend,
		"POST " + sessions + "/network-policy": v.setPolicy,
		"POST " + sessions + "/snapshot":       v.take,
		"GET /v2/sandboxes/snapshots":          v.listSnapshots,
		"GET " + snapshots:                     v.getSnapshot,
		"DELETE " + snapshots:                  v.deleteSnapshot,
		"POST " + sessions + "/fs/mkdir":       v.mkdir,
		"POST " + sessions + "/fs/write":       v.write,
		"POST " + sessions + "/fs/read":        v.read,
		"GET " + sessions + "/cmd/{cmdId}":     v.getCommand,
	}
}

// streaming are those that last as long as a command does, without the lock.
func (v *Vendor) streaming() map[string]operation {
	return map[string]operation{
		"POST " + sessions + "/cmd":             v.command,
		"GET " + sessions + "/cmd/{cmdId}/logs": v.logs,
	}
}

func (v *Vendor) plane() http.Handler {
	mux := v.Mux()
	for locked, operations := range map[bool]map[string]operation{true: v.operations(), false: v.streaming()} {
		for pattern, do := range operations {
			mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
				v.Serve(w, r, v.api, pattern, func(out http.ResponseWriter, r *http.Request, body []byte) {
					a, err := v.serve(r, body, do, locked)
					out.Header().Set("Date", v.clock.Now().UTC().Format(http.TimeFormat))
					v.say(out, a, err)
				})
			})
		}
	}
	return mux
}

func (v *Vendor) serve(r *http.Request, body []byte, do operation, locked bool) (answer, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	query := r.URL.Query()
	switch {
	case token != v.Token && token != v.OIDC(), query.Get("teamId") != v.Team:
		return answer{}, fail(http.StatusForbidden, "forbidden", "Not authorized")
	case query.Has("project") && query.Get("project") != v.Project, query.Has("projectId") && query.Get("projectId") != v.Project:
		return answer{}, fail(http.StatusNotFound, "not_found", "Project not found.")
	}
	v.tick()
	if locked {
		v.mu.Lock()
		defer v.mu.Unlock()
	}
	return do(r, body)
}

func (v *Vendor) say(w http.ResponseWriter, a answer, err error) {
	status := http.StatusOK
	if err != nil {
		f, known := err.(*failure) //nolint:errorlint // it is made here and never wrapped
		if !known {
			v.t.Errorf("the fake of Vercel is broken: %v", err)
			f = fail(http.StatusInternalServerError, "internal_server_error", err.Error())
		}
		if status = f.status; f.code == "" { // as of a file that is not there
			w.WriteHeader(status)
			return
		}
		for name, values := range f.header {
			w.Header()[name] = values
		}
		a = answer{body: map[string]any{"error": map[string]any{"code": f.code, "message": f.text}}}
	}
	switch a.media {
	case ndjson:
		v.judgeLines(a.raw)
	case "":
		a.media = "application/json; charset=utf-8"
		if a.raw, err = json.Marshal(a.body); err != nil {
			v.t.Errorf("the fake of Vercel cannot say %v: %v", a.body, err)
		}
	}
	w.Header().Set("Content-Type", a.media)
	w.WriteHeader(status)
	_, _ = w.Write(a.raw)
}

// decode reads a body that the description allows; an absent one leaves into as it is.
func decode(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	return json.Unmarshal(body, into)
}
