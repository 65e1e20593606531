package export

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// Media types of CloudEvents 1.0 in structured mode. Receivers compare them literally, so they carry no
// charset.
const (
	mediaOne   = "application/cloudevents+json"
	mediaBatch = "application/cloudevents-batch+json"
)

// Retries limits how often a request is repeated, how long each attempt takes, and the wait in between,
// from Min up to Cap. A receiver that asks for a longer wait ends the run.
type Retries struct {
	Max      int
	Min, Cap time.Duration
	Request  time.Duration
}

var defaultRetries = Retries{Max: 4, Min: time.Second, Cap: time.Minute, Request: 30 * time.Second}

// refusal is a receiver's answer that it will not take these events, though it may take others.
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

// post sends the events in order. nil: they were taken. *refusal: these events were not. Any other error
// ends the run. With an error, doubt says that the receiver may have them all the same.
func (p *poster) post(ctx context.Context, events [][]byte) (doubt bool, err error) {
	body, media := events[0], mediaOne
	if len(events) > 1 {
		body, media = slicesOf(events), mediaBatch
	}
	var sent webcall.Sent
	req, err := retryablehttp.NewRequestWithContext(sent.Watch(ctx), http.MethodPost, p.url, body)
	if err != nil {
		return false, extensions.Errorf(extensions.KindInvalid, "the endpoint %s: %w", p.url, err)
	}
	req.Header.Set("Content-Type", media)
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	p.http.ResponseLogHook = func(_ retryablehttp.Logger, r *http.Response) {
		sent.Answered(mayHave(r.StatusCode) || success(r.StatusCode))
	}
	resp, err := p.http.Do(req)
	doubt = sent.Maybe()
	if err != nil {
		return doubt, p.lost(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // for a message: whatever can be read
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

// again retries transient failures: lost connections, an overloaded or failing receiver. An untrusted
// certificate is not transient.
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
	asked, _ := webcall.RetryAfter(resp.Header)
	return asked <= p.retries.Cap, nil
}

func (p *poster) wait(low, high time.Duration, attempt int, resp *http.Response) time.Duration {
	if resp != nil {
		if asked, ok := webcall.RetryAfter(resp.Header); ok {
			return asked
		}
	}
	return retryablehttp.DefaultBackoff(low, high, attempt, nil)
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
	case status == http.StatusMultiStatus: // it took some; sending them one by one shows which
		return &refusal{answer}
	case success(status) && webcall.IsPage(resp.Header):
		return stop(extensions.KindInvalid, "check the address: it returns a web page and is not a receiver of CloudEvents")
	case success(status):
		return nil
	case status == http.StatusBadRequest, status == http.StatusConflict, status == http.StatusUnprocessableEntity,
		status == http.StatusRequestEntityTooLarge:
		return &refusal{answer}
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return stop(extensions.KindUnauthorized, "check the token of the receiver")
	case status == http.StatusTooManyRequests, status == http.StatusTooEarly, mayHave(status):
		err := extensions.Errorf(extensions.KindUnavailable, "%s %s", p.url, answer).
			WithRemedy("run the export again later; it continues where it stopped")
		err.RetryAfter, _ = webcall.RetryAfter(resp.Header)
		return err
	}
	return stop(extensions.KindInvalid, "check the address: it must accept CloudEvents by POST")
}

// lost returns the error of a request without an answer.
func (p *poster) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return extensions.Errorf(extensions.KindInterrupted, "sending to %s: %w", p.url, ctx.Err()).
			WithRemedy("run the export again; it continues where it stopped")
	}
	text := err.Error()
	if p.token != "" {
		text = strings.ReplaceAll(text, p.token, "…")
	}
	remedy := "check the address and the network"
	if webcall.Untrusted(err) {
		remedy = "check the address; if the receiver uses a private CA, give its certificates with --ca-file"
	}
	return extensions.Errorf(extensions.KindUnreachable, "sending to %s: %w", p.url, errors.New(extensions.Clean(text, 300))).
		WithRemedy("%s, then run the export again; it continues where it stopped", remedy)
}
