package e2btest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/filesystem"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/process"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

// daemonPort is where a sandbox's daemon listens.
const daemonPort = 49983

// gateway is the way into all sandboxes. A request names its sandbox and port by headers, or by its host.
func (v *Vendor) gateway(w http.ResponseWriter, r *http.Request) {
	id, port := r.Header.Get("E2b-Sandbox-Id"), r.Header.Get("E2b-Sandbox-Port")
	if id == "" {
		name, _, _ := strings.Cut(r.Host, ".")
		port, id, _ = strings.Cut(name, "-")
	}
	v.expire()
	v.mu.Lock()
	s := v.sandboxes[id]
	alive := s != nil && s.state == running
	var life context.Context
	if alive {
		life = s.streams
	}
	v.mu.Unlock()
	if !alive {
		refuse(w, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": "The sandbox was not found", "code": http.StatusBadGateway})
		return
	}
	at, err := strconv.Atoi(port)
	if err != nil {
		refuse(w, http.StatusBadRequest, map[string]any{"message": "Invalid sandbox port", "code": http.StatusBadRequest})
		return
	}
	// The connection ends with the sandbox's run.
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(life, func() { cancel(errCut) })()
	if at != daemonPort {
		v.port(w, r.WithContext(ctx), s, at)
		return
	}
	v.daemon(cuttable{w, ctx}, r.WithContext(ctx), s)
	if errors.Is(context.Cause(ctx), errCut) {
		panic(http.ErrAbortHandler)
	}
}

// cuttable says nothing more once the connection is cut: no error, and no end.
type cuttable struct {
	http.ResponseWriter
	ctx context.Context //nolint:containedctx // the connection's
}

func (c cuttable) Write(b []byte) (int, error) {
	if errors.Is(context.Cause(c.ctx), errCut) {
		return len(b), nil
	}
	return c.ResponseWriter.Write(b)
}

// Flush lets a stream's messages go out one by one.
func (c cuttable) Flush() { _ = http.NewResponseController(c.ResponseWriter).Flush() }

var errCut = errors.New("the sandbox's run ended")

func refuse(w http.ResponseWriter, status int, body any) {
	text, _ := json.Marshal(body)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// port passes a request on to a server inside.
func (v *Vendor) port(w http.ResponseWriter, r *http.Request, s *sandbox, port int) {
	if s.trafficKey != "" && r.Header.Get("E2b-Traffic-Access-Token") != s.trafficKey {
		refuse(w, http.StatusForbidden, map[string]any{"sandboxId": s.id,
			"message": "Sandbox is secured with traffic access token. Token header '" +
				"e2b-traffic-access-token' is missing", "code": http.StatusForbidden})
		return
	}
	v.mu.Lock()
	to, known := v.listeners[port]
	v.mu.Unlock()
	if !known {
		to = "127.0.0.1:" + strconv.Itoa(port)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to})
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) {
		refuse(w, http.StatusBadGateway, map[string]any{"sandboxId": s.id, "message": "The sandbox is running but port is not open", "port": port,
			"code": http.StatusBadGateway})
	}
	proxy.ServeHTTP(w, r)
}

// daemon is what listens inside.
func (v *Vendor) daemon(w http.ResponseWriter, r *http.Request, s *sandbox) {
	pattern := r.Method + " " + r.URL.Path
	files := r.URL.Path == "/files"
	v.Record(r, pattern)
	var body []byte
	if files {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return // the client went away
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	fault := v.Fault(pattern)
	if fault.Strikes(w, r, Before) {
		return
	}
	if s.accessToken != "" && r.Header.Get("X-Access-Token") != s.accessToken && !files && pattern != "GET /health" {
		refuse(w, http.StatusUnauthorized, map[string]any{"code": http.StatusUnauthorized,
			"message": "unauthorized access, please provide a valid access token or method signing if supported"})
		return
	}
	in := inside{v: v, s: s}
	mux := v.Mux()
	mux.Handle(process.NewProcessHandler(in, connect.WithReadMaxBytes(8<<20)))
	mux.Handle(filesystem.NewFilesystemHandler(in, connect.WithReadMaxBytes(8<<20)))
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /files", in.download)
	mux.HandleFunc("POST /files", in.uploadFiles)
	if fault != nil && fault.When == After {
		mux.ServeHTTP(discard{header: http.Header{}}, r)
		fault.Strikes(w, r, After)
		return
	}
	if files {
		out := httptest.NewRecorder()
		v.Judged(out, r, v.daemonAPI, pattern, body, func(w http.ResponseWriter, r *http.Request, _ []byte) { mux.ServeHTTP(w, r) })
		vendortest.Copy(w, out)
		return
	}
	mux.ServeHTTP(w, r)
}

// discard takes an answer that nobody will hear.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
func (discard) Flush()                      {}
