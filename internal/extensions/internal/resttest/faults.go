package resttest

import (
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var quiet = log.New(io.Discard, "", 0)

// fault is one wrong answer. look and change are the kinds that calls without and with an effect may return;
// maybe says that the call may have had its effect, so that a create returns a handle.
type fault struct {
	name         string
	answer       http.HandlerFunc
	look, change []extensions.Kind
	maybe        bool
	retry        [2]time.Duration // what the error says about when to come again, at least and at most
}

type kinds = []extensions.Kind

var (
	// unheard are the kinds of a look that told nothing.
	unheard = kinds{extensions.KindUnreachable, extensions.KindUnavailable, extensions.KindIndeterminate}
	unclear = kinds{extensions.KindIndeterminate, extensions.KindTimeout}
	odd     = kinds{extensions.KindUnreachable, extensions.KindInternal, extensions.KindIndeterminate}
	later   = kinds{extensions.KindUnavailable}
	nowhere = kinds{extensions.KindUnreachable}
	locked  = kinds{extensions.KindUnauthorized}
)

func answer(status int, media, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const (
	asJSON = "application/json"
	asPage = "text/html; charset=utf-8"
	page   = "<!doctype html><html><body><h1>Something else</h1></body></html>"
	said   = `{"code":0,"message":"as the vendor says it"}`
)

func faults(read *atomic.Bool) []fault {
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	return []fault{
		{name: "too-many-seconds", answer: answer(429, asJSON, said, "Retry-After", "7"), look: later, change: later,
			retry: [2]time.Duration{7 * time.Second, 7 * time.Second}},
		{name: "too-many-date", answer: answer(429, asJSON, said, "Retry-After", in(time.Hour)), look: later, change: later,
			retry: [2]time.Duration{50 * time.Minute, time.Hour}},
		{name: "too-many-at-a-gateway", answer: answer(429, asPage, page, "Retry-After", "2"), look: later, change: later,
			retry: [2]time.Duration{2 * time.Second, 2 * time.Second}},
		{name: "failed", answer: answer(500, asJSON, said), look: unheard, change: unclear, maybe: true},
		{name: "bad-gateway", answer: answer(502, asPage, page), look: unheard, change: unclear, maybe: true},
		{name: "overloaded-gateway", answer: answer(503, asPage, page), look: unheard, change: unclear, maybe: true},
		{name: "gateway-timeout", answer: answer(504, asPage, page), look: unheard, change: unclear, maybe: true},
		{name: "cut-before-the-answer", answer: cut(0), look: unheard, change: unclear, maybe: true},
		{name: "cut-in-the-answer", answer: cut(20), look: unheard, change: unclear, maybe: true},
		{name: "no-json", answer: answer(200, asJSON, "yes"), look: odd, change: unclear, maybe: true},
		{name: "half-a-json", answer: answer(201, asJSON, `{"id":`), look: odd, change: unclear, maybe: true},
		{name: "huge", answer: huge(read), look: odd, change: unclear, maybe: true},
		{name: "page-with-200", answer: answer(200, asPage, page), look: odd, change: unclear, maybe: true},
		{name: "page-with-404", answer: answer(404, asPage, page), look: odd, change: nowhere},
		{name: "page-with-410", answer: answer(410, asPage, page), look: odd, change: nowhere},
		{name: "wrong-key", answer: answer(401, asJSON, said), look: locked, change: locked},
		{name: "forbidden", answer: answer(403, asJSON, said), look: locked, change: locked},
	}
}

// cut promises more than it sends, n bytes of it.
func cut(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if n > 0 {
			w.Header().Set("Content-Type", asJSON)
			w.Header().Set("Content-Length", strconv.Itoa(n*100))
			_, _ = io.WriteString(w, `[{"a":"`+strings.Repeat("x", n))
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
}

// hugeSize is what huge sends at most, in bytes; an adapter that reads it all is seen.
const hugeSize = 256 << 20

func huge(read *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", asJSON)
		chunk := strings.Repeat("x", 1<<20)
		_, _ = io.WriteString(w, `[{"a":"`)
		for range hugeSize >> 20 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
		read.Store(true)
	}
}

// slow sends a byte now and then until the other side leaves.
func slow(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", asJSON)
	for {
		_, err := io.WriteString(w, " ")
		if err == nil {
			err = http.NewResponseController(w).Flush()
		}
		if err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}
