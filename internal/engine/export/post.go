package export

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Media types of CloudEvents 1.0 in structured mode. Receivers compare them
// as they are, so they carry no charset.
const (
	mediaOne   = "application/cloudevents+json"
	mediaBatch = "application/cloudevents-batch+json"
)

// Retries bound how often one request is repeated, how long each takes, and
// how long is waited in between, from Min up to Cap. A receiver that asks for
// a longer wait ends the run.
type Retries struct {
	Max      int
	Min, Cap time.Duration
	Request  time.Duration
}

var defaultRetries = Retries{Max: 4, Min: time.Second, Cap: time.Minute, Request: 30 * time.Second}

// refusal is the receiver's answer that it will not take these events, while
// it may take others.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

// poster posts to one endpoint.
type poster struct {
	*endpoint
	http    *retryablehttp.Client
	retries Retries
}

func (e *endpoint) poster(r Retries) *poster {
	p := &poster{endpoint: e, retries: r}
	e.client.Timeout = r.Request
	p.http = &retryablehttp.Client{HTTPClient: e.client, RetryMax: r.Max, RetryWaitMin: r.Min, RetryWaitMax: r.Cap,
		CheckRetry: p.again, Backoff: p.wait, ErrorHandler: retryablehttp.PassthroughErrorHandler}
	return p
}

func (p *poster) close() { p.client.CloseIdleConnections() }

// post sends the events, in order. nil: they are taken. *refusal: these
// events are not. Any other error ends the run. Unless it is nil, doubt tells
// whether the receiver may have them all the same.
func (p *poster) post(ctx context.Context, events [][]byte) (doubt bool, err error) {
	body, media := events[0], mediaOne
	if len(events) > 1 {
		body, media = slicesOf(events), mediaBatch
	}
	// sent: a request is on its way and not answered; uncertain: there was an
	// attempt after which the receiver may have the events.
	var sent, uncertain atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() {
		if sent.Swap(true) {
			uncertain.Store(true) // the attempt before was never answered
		}
	}}
	req, err := retryablehttp.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodPost, p.url, body)
	if err != nil {
		return false, extensions.Errorf(extensions.KindInvalid, "the endpoint %s: %w", p.url, err)
	}
	req.Header.Set("Content-Type", media)
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	p.http.ResponseLogHook = func(_ retryablehttp.Logger, r *http.Response) {
		sent.Store(false)
		if mayHave(r.StatusCode) || success(r.StatusCode) {
			uncertain.Store(true)
		}
	}
	resp, err := p.http.Do(req)
	doubt = uncertain.Load() || sent.Load()
	if err != nil {
		return doubt, p.lost(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // for a message: what can be read of it
	return doubt, p.judge(resp, said)
}

func slicesOf(events [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(events, []byte{','})...), ']')
}

// mayHave reports an answer after which the events may have been taken.
func mayHave(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented || status == http.StatusRequestTimeout
}

func success(status int) bool { return status >= 200 && status < 300 }

// page reports an answer for people: a login page, or that of some website,
// answers everything with 200 and takes nothing.
func page(resp *http.Response) bool {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && (media == "text/html" || media == "application/xhtml+xml")
}

// again repeats what may pass: lost connections, an overloaded or failing
// receiver. A certificate that is not trusted does not pass.
func (p *poster) again(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	}
	if !mayHave(resp.StatusCode) && resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusTooEarly {
		return false, nil
	}
	asked, _ := retryAfter(resp)
	return asked <= p.retries.Cap, nil
}

func (p *poster) wait(low, high time.Duration, attempt int, resp *http.Response) time.Duration {
	if asked, ok := retryAfter(resp); ok {
		return asked
	}
	return retryablehttp.DefaultBackoff(low, high, attempt, nil)
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	if resp == nil || resp.Header.Get("Retry-After") == "" {
		return 0, false
	}
	text := resp.Header.Get("Retry-After")
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(max(n, 0)) * time.Second, true
	}
	at, err := http.ParseTime(text)
	return max(time.Until(at), 0), err == nil
}

// judge turns an answer into an error.
func (p *poster) judge(resp *http.Response, said []byte) error {
	status := resp.StatusCode
	answer := "answered " + strconv.Itoa(status) + " " + http.StatusText(status)
	if p.token != "" {
		said = bytes.ReplaceAll(said, []byte(p.token), []byte("…"))
	}
	if text := strings.TrimSpace(extensions.Clean(string(said), 300)); text != "" {
		answer += ": " + text
	}
	stop := func(kind extensions.Kind, remedy string) error {
		return extensions.Errorf(kind, "%s %s", p.url, answer).WithRemedy("%s", remedy)
	}
	switch {
	case status == http.StatusMultiStatus: // it took some: which, only the events one by one can tell
		return &refusal{answer}
	case success(status) && page(resp):
		return stop(extensions.KindInvalid, "check the address: it answers with a page for people, not as a receiver of CloudEvents")
	case success(status):
		return nil
	case status == http.StatusBadRequest, status == http.StatusConflict, status == http.StatusUnprocessableEntity, status == http.StatusRequestEntityTooLarge:
		return &refusal{answer}
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return stop(extensions.KindUnauthorized, "check the token of the receiver")
	case status == http.StatusTooManyRequests, status == http.StatusTooEarly, mayHave(status):
		err := extensions.Errorf(extensions.KindUnavailable, "%s %s", p.url, answer).
			WithRemedy("run the export again later; it goes on where it stopped")
		err.RetryAfter, _ = retryAfter(resp)
		return err
	}
	return stop(extensions.KindInvalid, "check the address: it must take CloudEvents by POST")
}

// lost tells of a request without an answer.
func (p *poster) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return extensions.Errorf(extensions.KindInterrupted, "sending to %s: %w", p.url, ctx.Err()).
			WithRemedy("run the export again; it goes on where it stopped")
	}
	text := err.Error()
	if p.token != "" {
		text = strings.ReplaceAll(text, p.token, "…")
	}
	remedy := "check the address and the network"
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		remedy = "check the address; where a private authority vouches for the receiver, name its certificates with --ca-file"
	}
	return extensions.Errorf(extensions.KindUnreachable, "sending to %s: %w", p.url, errors.New(extensions.Clean(text, 300))).
		WithRemedy("%s, then run the export again; it goes on where it stopped", remedy)
}
