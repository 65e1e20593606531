package httpledger

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// exchange is one operation under way, with all its attempts.
type exchange struct {
	begun time.Time
	// sent: the latest attempt may have come as far as the server; lost: one
	// may have, and its answer did not come back.
	sent, lost atomic.Bool
	body       []byte // of the answer
}

type exchangeKey struct{}

// write is ask for what changes something: it starts while ctx lasts, and once
// started it is not given up, so that its outcome is known.
func write[A any](ctx context.Context, c *Client, op string, q any) (A, error) {
	var none A
	if c.readOnly {
		return none, c.onlyReads()
	}
	if err := ctx.Err(); err != nil {
		return none, oops(extensions.KindTimeout, "nothing was written: %w", err)
	}
	a, sent, err := exchanged[A](context.WithoutCancel(ctx), c, op, q)
	if err != nil && sent {
		err = oops(extensions.KindIndeterminate, "whether it was recorded is not known: %w", err).WithRemedy("%s", extensions.RemedyOf(err))
	}
	return a, err
}

func (c *Client) onlyReads() error {
	return oops(extensions.KindUnsupported, "the ledger %s was opened for reading only", c.URL())
}

// ask is one operation that changes nothing.
func ask[A any](ctx context.Context, c *Client, op string, q any) (A, error) {
	a, _, err := exchanged[A](ctx, c, op, q)
	return a, err
}

// exchanged asks until there is an answer, a refusal, or no patience left. sent
// tells that the request may have been carried out all the same.
func exchanged[A any](ctx context.Context, c *Client, op string, q any) (answer A, sent bool, err error) {
	var body bytes.Buffer
	if err := errors.Join(checkText(reflect.ValueOf(q)), encode(&body, q)); err != nil {
		return answer, false, oops(extensions.KindInvalid, "the request for %s cannot be written: %w", op, err)
	}
	x := &exchange{begun: time.Now()}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, exchangeKey{}, x), attemptLimit+patience)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { x.sent.Store(false) },
		WroteHeaders: func() { x.sent.Store(true) },
	})
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, c.place.base+prefix+op, body.Bytes())
	if err != nil {
		return answer, false, oops(extensions.KindInternal, "%w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	req.Header.Set("Content-Type", contentType)
	req.Header.Set(headerRequest, newRequestID())
	req.SetResponseHandler(func(resp *http.Response) error {
		c.clock.see(resp.Header.Get("Date"), c.now())
		return x.read(resp)
	})
	resp, err := c.http.Do(req)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return answer, x.sent.Load() || x.lost.Load(), c.notAnswered(ctx, err)
	}
	if resp.StatusCode == http.StatusOK {
		if err := decode(bytes.NewReader(x.body), &answer); err != nil {
			return answer, true, oops(extensions.KindInternal, "the ledger %s answered with something else: %w", c.URL(), err).
				WithRemedy("check that the address is that of `sandboxer ledger serve`, of a version that fits this one")
		}
		return answer, false, nil
	}
	sure, door, err := c.refused(resp, x.body)
	return answer, !sure && x.sent.Load() || door && x.lost.Load(), err
}

// atTheDoor are refusals of an attempt before the ledger looked at the
// operation's key: they say nothing of the attempts before.
var atTheDoor = []extensions.Kind{extensions.KindUnavailable, extensions.KindTimeout, extensions.KindUnauthorized, extensions.KindInternal}

// read takes the whole answer in; one that is cut off is none.
func (x *exchange) read(resp *http.Response) (err error) {
	x.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(x.body) > maxAnswer {
		err = errTooLong
	}
	return err
}

var errTooLong = errors.New("the answer is too long")

// again tells whether another attempt may help.
func again(ctx context.Context, resp *http.Response, err error) (bool, error) {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x != nil {
		x.judge(resp, err)
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case x == nil || time.Since(x.begun) > patience, errors.Is(err, errTooLong), untrusted(err):
		return false, err
	case err != nil:
		return true, nil
	}
	return passing(resp.StatusCode), nil
}

// judge notes an attempt that may have been carried out without our hearing of it.
func (x *exchange) judge(resp *http.Response, err error) {
	unheard := err != nil || resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusGatewayTimeout
	if x.sent.Load() && unheard {
		x.lost.Store(true)
	}
}

func passing(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// pause waits as long as the server asks for, within our patience; else twice
// as long each time, and never as long as others do.
func pause(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
	if resp != nil {
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s >= 0 {
			return min(time.Duration(s)*time.Second, patience)
		}
	}
	d := min(least<<min(attempt, 10), most)
	return d/2 + time.Duration(rand.Int64N(int64(d)/2+1)) //nolint:gosec // to part those who wait
}

// untrusted: the server could not prove who it is.
func untrusted(err error) bool {
	var c *tls.CertificateVerificationError
	var r tls.RecordHeaderError
	return errors.As(err, &c) || errors.As(err, &r) || errors.Is(err, http.ErrSchemeMismatch)
}

// notAnswered explains why there is no answer.
func (c *Client) notAnswered(ctx context.Context, err error) error {
	text := extensions.Clean(err.Error(), 500)
	var kind extensions.Kind
	remedy := "check that `sandboxer ledger serve` runs and can be reached from here, then run again"
	switch {
	case untrusted(err):
		kind = extensions.KindUnauthorized
		remedy = "name the CA that signed the server's certificate (?ca=… in the address, or " + EnvCA + ") and the host as the certificate does"
	case errors.Is(ctx.Err(), context.Canceled):
		kind = extensions.KindTimeout
	case errors.Is(err, errTooLong):
		kind, remedy = extensions.KindInvalid, "ask for less"
	default:
		kind = extensions.KindUnavailable
	}
	return oops(kind, "asking the ledger %s: %s", c.URL(), text).WithRemedy("%s", remedy)
}

// refused reads a refusal. sure: nothing of this attempt was carried out, as
// far as an answer can tell; door: of those before it, it tells nothing.
func (c *Client) refused(resp *http.Response, body []byte) (sure, door bool, err error) {
	var f failure
	if strings.HasPrefix(resp.Header.Get("Content-Type"), contentType) && decode(bytes.NewReader(body), &f) == nil && f.Kind != "" {
		return true, slices.Contains(atTheDoor, f.Kind), f.err() // ours; what it does not know it calls indeterminate itself
	}
	what := "the ledger " + c.URL() + " is not answered for by `sandboxer ledger serve`: HTTP " + strconv.Itoa(resp.StatusCode)
	if passing(resp.StatusCode) {
		return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable, true,
			oops(extensions.KindUnavailable, "%s", what).WithRemedy("check what stands before the server, then run again")
	}
	return true, true, oops(extensions.KindInvalid, "%s", what).WithRemedy("check the ledger address")
}
