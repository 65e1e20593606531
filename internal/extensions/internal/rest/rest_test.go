package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/time/rate"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "k3y-5f1c7e0b9d24"

type thing struct {
	ID string `json:"id"`
}

// vendorAnd returns a vendor that answers by h, and a client of it.
func vendorAnd(t *testing.T, h http.HandlerFunc, with ...func(*Options)) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	o := Options{Vendor: "Vendor", Base: s.URL, Timeout: 5 * time.Second,
		Secrets: map[string]extensions.Secret{"X-Key": extensions.NewSecret(key)}}
	for _, f := range with {
		f(&o)
	}
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answering(status int, header http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// ask makes a call without and one with an effect.
func ask(t *testing.T, c *Client) (look, change error) {
	t.Helper()
	var out thing
	is := func() bool { return out.ID == "a" }
	_, look = c.Do(t.Context(), Call{Method: http.MethodGet, Path: []string{"things", "a"}, Out: &out, Is: is})
	_, change = c.Do(t.Context(), Call{Method: http.MethodPost, Path: []string{"things"}, In: thing{"a"}, Out: &out, Is: is})
	return look, change
}

func TestWhatIsHeardDecidesTheKind(t *testing.T) {
	t.Parallel()
	const own, page = `{"code":1,"message":"no"}`, "<html>no</html>"
	html := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	for what, x := range map[string]struct {
		status       int
		header       http.Header
		body         string
		look, change extensions.Kind
	}{
		"bad request":            {400, nil, own, extensions.KindInvalid, extensions.KindInvalid},
		"wrong key":              {401, nil, own, extensions.KindUnauthorized, extensions.KindUnauthorized},
		"not allowed":            {403, nil, own, extensions.KindUnauthorized, extensions.KindUnauthorized},
		"not there":              {404, nil, own, extensions.KindNotFound, extensions.KindNotFound},
		"not there, a gateway":   {404, html, page, extensions.KindUnreachable, extensions.KindUnreachable},
		"gone":                   {410, nil, own, extensions.KindNotFound, extensions.KindNotFound},
		"a proxy's login":        {407, nil, "", extensions.KindUnreachable, extensions.KindUnreachable},
		"too slow for it":        {408, nil, own, extensions.KindUnavailable, extensions.KindIndeterminate},
		"conflict":               {409, nil, own, extensions.KindConflict, extensions.KindConflict},
		"unpaid":                 {402, nil, own, extensions.KindExhausted, extensions.KindExhausted},
		"too many":               {429, nil, own, extensions.KindUnavailable, extensions.KindUnavailable},
		"too many, a gateway":    {429, html, page, extensions.KindUnavailable, extensions.KindUnavailable},
		"failed":                 {500, nil, own, extensions.KindUnavailable, extensions.KindIndeterminate},
		"not made":               {501, nil, own, extensions.KindUnsupported, extensions.KindUnsupported},
		"bad gateway":            {502, html, page, extensions.KindUnavailable, extensions.KindIndeterminate},
		"overloaded":             {503, nil, own, extensions.KindUnavailable, extensions.KindUnavailable},
		"overloaded, a gateway":  {503, html, page, extensions.KindUnavailable, extensions.KindIndeterminate},
		"moved":                  {302, http.Header{"Location": {"/x"}}, "", extensions.KindUnreachable, extensions.KindUnreachable},
		"a page instead":         {200, html, page, extensions.KindUnreachable, extensions.KindIndeterminate},
		"no JSON":                {200, nil, "yes", extensions.KindInternal, extensions.KindIndeterminate},
		"half an answer":         {200, nil, `{"id":`, extensions.KindInternal, extensions.KindIndeterminate},
		"another object":         {200, nil, `{"id":"b"}`, extensions.KindInternal, extensions.KindIndeterminate},
		"another kind of answer": {200, nil, `{"id":7}`, extensions.KindInternal, extensions.KindIndeterminate},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			look, change := ask(t, vendorAnd(t, answering(x.status, x.header, x.body)))
			if extensions.KindOf(look) != x.look || extensions.KindOf(change) != x.change {
				t.Errorf("%s and %s, want %s and %s (%v)", extensions.KindOf(look), extensions.KindOf(change), x.look, x.change, change)
			}
			if extensions.RemedyOf(look) == "" && x.look != extensions.KindNotFound && x.look != extensions.KindInvalid &&
				x.look != extensions.KindConflict && x.look != extensions.KindUnsupported {
				t.Errorf("no word on what to do: %v", look)
			}
		})
	}
}

func TestASuccessIsOne(t *testing.T) {
	t.Parallel()
	c := vendorAnd(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sent := r.Header.Get("Content-Type") + string(b)
		if r.Header.Get("X-Key") != key || r.Method == http.MethodPost && sent != `application/json{"id":"a"}` {
			t.Errorf("%s %s %v %q", r.Method, r.URL, r.Header, b)
		}
		answering(http.StatusCreated, nil, `{"id":"a","more":[1]}`)(w, r)
	})
	if look, change := ask(t, c); look != nil || change != nil {
		t.Error(look, change)
	}
}

// A server that closes what it accepted has perhaps read the request.
func TestWhetherItWasSentDecides(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 16))
			_ = c.Close()
		}
	}()
	c, err := Open(Options{Vendor: "Vendor", Base: base})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	look, change := ask(t, c)
	if extensions.KindOf(look) != extensions.KindUnreachable || extensions.KindOf(change) != extensions.KindIndeterminate {
		t.Errorf("cut off: %v, %v", look, change)
	}
	_ = l.Close()
	<-closed
	look, change = ask(t, c)
	if extensions.KindOf(look) != extensions.KindUnreachable || extensions.KindOf(change) != extensions.KindUnreachable {
		t.Errorf("refused: %v, %v", look, change)
	}
}

func TestAnUntrustedCertificateIsToldAndNothingIsSent(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	s.Config.ErrorLog = nil
	s.StartTLS()
	defer s.Close()
	c, err := Open(Options{Vendor: "Vendor", Base: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = ask(t, c)
	if !extensions.IsKind(err, extensions.KindUnreachable) || !strings.Contains(extensions.RemedyOf(err), "certificate") {
		t.Errorf("%v (%s)", err, extensions.RemedyOf(err))
	}
}

func TestRetryAfterArrives(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]time.Duration{"7": {7 * time.Second, 7 * time.Second}, "-3": {0, 0}, "soon": {0, 0}, "": {0, 0},
		time.Now().Add(time.Minute).UTC().Format(http.TimeFormat): {50 * time.Second, time.Minute}} {
		_, err := ask(t, vendorAnd(t, answering(429, http.Header{"Retry-After": {text}}, `{"message":"slow"}`)))
		var e *extensions.Error
		if !errors.As(err, &e) || e.RetryAfter < want[0] || e.RetryAfter > want[1] {
			t.Errorf("%q: %v, want %v", text, e, want)
		}
	}
}

func TestOnlyTheVendorsOwnWordIsJudgedByIt(t *testing.T) {
	t.Parallel()
	judge := func(o *Options) {
		o.Judge = func(a Answer) (extensions.Kind, string) { return extensions.KindExhausted, "wait" }
	}
	_, err := ask(t, vendorAnd(t, answering(429, nil, `{"message":"full"}`), judge))
	if !extensions.IsKind(err, extensions.KindExhausted) || !strings.Contains(err.Error(), "full") {
		t.Error(err)
	}
	_, err = ask(t, vendorAnd(t, answering(429, http.Header{"Content-Type": {"text/html"}}, `{}`), judge))
	if !extensions.IsKind(err, extensions.KindUnavailable) {
		t.Error(err)
	}
}

func TestNoSecretAndNoControlCharacterIsShown(t *testing.T) {
	t.Parallel()
	_, err := ask(t, vendorAnd(t, answering(400, nil, `{"message":"the key `+key+` \u001b[31m\nforged: line"}`)))
	if strings.Contains(err.Error(), key) || strings.ContainsAny(err.Error(), "\x1b\n") || !strings.Contains(err.Error(), "the key …") {
		t.Errorf("%q", err)
	}
}

func TestARedirectGetsNothing(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		ask(t, vendorAnd(t, answering(status, http.Header{"Location": {elsewhere.URL}}, "")))
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"`)
		for chunk := strings.Repeat("x", 1<<16); ; {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}
	look, change := ask(t, vendorAnd(t, endless, func(o *Options) { o.MaxBody = 1 << 20 }))
	if extensions.KindOf(look) != extensions.KindInternal || extensions.KindOf(change) != extensions.KindIndeterminate {
		t.Errorf("%v, %v", look, change)
	}
}

func TestASlowAnswerEndsInTime(t *testing.T) {
	t.Parallel()
	slow := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		for {
			_, err := io.WriteString(w, " ")
			if w.(http.Flusher).Flush(); err != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	look, change := ask(t, vendorAnd(t, slow, func(o *Options) { o.Timeout = 300 * time.Millisecond }))
	if extensions.KindOf(look) != extensions.KindUnreachable || extensions.KindOf(change) != extensions.KindIndeterminate {
		t.Errorf("%v, %v", look, change)
	}
}

func TestAContextThatEndedSendsNothing(t *testing.T) {
	t.Parallel()
	c := vendorAnd(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Do(ctx, Call{Method: http.MethodPost, Path: []string{"things"}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	turn := rate.NewLimiter(rate.Every(time.Hour), 1)
	turn.Allow()
	short, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	_, err := c.Do(short, Call{Method: http.MethodPost, Path: []string{"things"}, Turn: turn})
	if !extensions.IsKind(err, extensions.KindUnavailable) {
		t.Errorf("a turn that comes too late: %v", err)
	}
}

func TestPartsOfAPathStayParts(t *testing.T) {
	t.Parallel()
	var got []string
	c := vendorAnd(t, func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.RequestURI) },
		func(o *Options) { o.Base += "/v1/" })
	for _, part := range []string{"a/b", "a b?c#d", "é", "..", ".", ""} {
		_, err := c.Do(t.Context(), Call{Method: http.MethodDelete, Path: []string{"things", part}})
		if refused := strings.Trim(part, ".") == ""; refused != extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%q: %v", part, err)
		}
	}
	if want := []string{"/v1/things/a%2Fb", "/v1/things/a%20b%3Fc%23d", "/v1/things/%C3%A9"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q", got)
	}
}

func TestAddressesAndKeysAreChecked(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"http://vendor.example", "ftp://x", "https://", "https://me:pass@vendor.example", "https://v.example/?a", ":"} {
		_, err := Open(Options{Vendor: "Vendor", Base: base})
		if !extensions.IsKind(err, extensions.KindInvalid) || strings.Contains(fmt.Sprint(err, extensions.RemedyOf(err)), "pass") {
			t.Errorf("%s: %v", base, err)
		}
	}
	for _, k := range []string{"", "a b", "a\n", "é"} {
		_, err := Open(Options{Vendor: "Vendor", Base: "https://vendor.example",
			Secrets: map[string]extensions.Secret{"X-Key": extensions.NewSecret(k)}})
		if !extensions.IsKind(err, extensions.KindUnauthorized) {
			t.Errorf("the key %q: %v", k, err)
		}
	}
}

func TestAListingEnds(t *testing.T) {
	t.Parallel()
	asked := 0
	pages := func(next func(n int) string) error {
		asked = 0
		return Pages("Vendor", func(string) (string, error) { asked++; return next(asked), nil })
	}
	if err := pages(func(n int) string { return map[int]string{1: "a", 2: "b"}[n] }); err != nil || asked != 3 {
		t.Errorf("%d pages, %v", asked, err)
	}
	if err := pages(func(n int) string { return fmt.Sprint(n % 3) }); !extensions.IsKind(err, extensions.KindUnavailable) || asked != 4 {
		t.Errorf("in circles: %d pages, %v", asked, err)
	}
	if err := pages(func(n int) string { return fmt.Sprint(n) }); !extensions.IsKind(err, extensions.KindUnavailable) || asked != MaxPages+1 {
		t.Errorf("without an end: %d pages, %v", asked, err)
	}
}

func TestATimeOfTheVendorIsMeasuredByItsClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
		c := vendorAnd(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusNotFound)
		})
		at := time.Now().Add(ahead + time.Minute) // in a minute, by that clock
		if before := c.Until(at); before > ahead+time.Minute || before < ahead+50*time.Second {
			t.Errorf("ahead by %s, before any answer: %s", ahead, before)
		}
		_, _ = ask(t, c)
		if left := c.Until(at); left > 65*time.Second || left < 50*time.Second {
			t.Errorf("ahead by %s: %s", ahead, left)
		}
	}
}
