package e2btest

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// failure is what the vendor's API answers to what it refuses.
type failure struct {
	Code      int    `json:"code"`
	Message   string `json:"message"`
	ErrorCode string `json:"error_code,omitempty"`
	header    http.Header
}

func (f *failure) Error() string { return f.Message }

func fail(code int, message string) *failure { return &failure{Code: code, Message: message} }

// answer is a successful one; body nil has none.
type answer struct {
	status int
	body   any
	header http.Header
}

// operations are those of the control plane that the fake has, by pattern of http.ServeMux. They run under the
// vendor's lock.
func (v *Vendor) operations() map[string]func(*http.Request, []byte) (answer, error) {
	return map[string]func(*http.Request, []byte) (answer, error){
		"POST /sandboxes":                                     v.create,
		"GET /v2/sandboxes":                                   v.list,
		"GET /sandboxes/{sandboxID}":                          v.get,
		"DELETE /sandboxes/{sandboxID}":                       v.kill,
		"POST /sandboxes/{sandboxID}/timeout":                 v.setTimeout,
		"POST /sandboxes/{sandboxID}/refreshes":               v.refresh,
		"POST /sandboxes/{sandboxID}/pause":                   v.pause,
		"POST /sandboxes/{sandboxID}/resume":                  v.resume,
		"POST /sandboxes/{sandboxID}/connect":                 v.connect,
		"POST /sandboxes/{sandboxID}/fork":                    v.fork,
		"PUT /sandboxes/{sandboxID}/network":                  v.setNetwork,
		"GET /sandboxes/{sandboxID}/metrics":                  v.metrics,
		"GET /v2/sandboxes/{sandboxID}/logs":                  v.logs,
		"POST /sandboxes/{sandboxID}/snapshots":               v.snapshot,
		"GET /snapshots":                                      v.listSnapshots,
		"GET /v2/templates":                                   v.listTemplates,
		"POST /v3/templates":                                  v.newTemplate,
		"GET /templates/{templateID}":                         v.getTemplate,
		"DELETE /templates/{templateID}":                      v.deleteTemplate,
		"GET /templates/aliases/{alias}":                      v.alias,
		"GET /templates/{templateID}/files/{hash}":            v.fileLink,
		"POST /v2/templates/{templateID}/builds/{buildID}":    v.startBuild,
		"GET /templates/{templateID}/builds/{buildID}/status": v.buildStatus,
	}
}

func (v *Vendor) controlPlane() http.Handler {
	mux := v.Mux()
	for pattern, do := range v.operations() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v.Serve(w, r, v.api, pattern, func(out http.ResponseWriter, r *http.Request, body []byte) {
				a, err := v.serve(r, body, do)
				v.write(out, a, err)
			})
		})
	}
	mux.HandleFunc("PUT /uploads/{hash}", v.upload) // the link of fileLink; the vendor's lies at a store elsewhere
	return mux
}

func (v *Vendor) serve(r *http.Request, body []byte, do func(*http.Request, []byte) (answer, error)) (answer, error) {
	if r.Header.Get("X-API-Key") != v.Key {
		return answer{}, fail(http.StatusUnauthorized, "Invalid API key, please visit https://e2b.dev/docs/api-key for more information.")
	}
	v.expire()
	v.mu.Lock()
	defer v.mu.Unlock()
	return do(r, body)
}

func (v *Vendor) write(w http.ResponseWriter, a answer, err error) {
	if err != nil {
		f, known := err.(*failure) //nolint:errorlint // it is made here and never wrapped
		if !known {
			v.t.Errorf("the fake of E2B is broken: %v", err)
			f = fail(http.StatusInternalServerError, err.Error())
		}
		a = answer{status: f.Code, body: f, header: f.header}
	}
	w.Header().Set("Date", v.clock.Now().UTC().Format(http.TimeFormat))
	for name, values := range a.header {
		w.Header()[name] = values
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	text, err := json.Marshal(a.body)
	if err != nil {
		v.t.Errorf("the fake of E2B cannot say %v: %v", a.body, err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.status)
	_, _ = w.Write(text)
}

// read decodes a body that the description allows; an absent one leaves into as it is.
func read(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	return json.Unmarshal(body, into)
}
