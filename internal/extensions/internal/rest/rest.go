// Package rest is the client of vendors that speak JSON over HTTP. It classifies what it hears, once for all
// adapters, and never repeats a call: the contract leaves that to the engine, whose patience would otherwise
// multiply with the client's. So it takes nothing of go-retryablehttp, whose purpose is to repeat.
//
// What decides between KindUnreachable and KindIndeterminate is whether the request may have arrived. A page
// for people, a redirect or an answer about another object is never taken for the vendor's word: absent is only
// what the vendor itself says is absent.
package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// Defaults of Options, and the longest error answer that is read.
const (
	DefaultTimeout = time.Minute
	DefaultBody    = 8 << 20 // bytes
	maxError       = 64 << 10
	maxWords       = 300 // characters of the vendor's text in a message
)

// Options describe one account of one vendor.
type Options struct {
	Vendor string // for messages: "E2B"
	Base   string // https, or http on this machine; paths of calls are added
	// Secrets are header fields of every call. What the vendor says is shown without their values.
	Secrets map[string]extensions.Secret
	Bearer  extensions.Secret // the token of every call's Authorization; zero = none
	Header  http.Header       // further fields of every call; nil = none
	Timeout time.Duration     // of one call with its answer; 0 = DefaultTimeout
	MaxBody int64             // of an answer, in bytes; 0 = DefaultBody
	// Judge says what an error answer means by the vendor's own rules; "" = by those of HTTP. It may be nil.
	Judge func(Answer) (kind extensions.Kind, remedy string)
	// HTTP is a client of webcall; nil = one of its own.
	HTTP *http.Client
}

// Client calls one account.
type Client struct {
	Options
	base  *url.URL
	ahead atomic.Int64 // nanoseconds from this machine's clock to the vendor's, by the last answer with a date
}

// Open checks o and connects to nothing. Errors are KindInvalid, or KindUnauthorized for a credential that no
// header can hold.
func Open(o Options) (*Client, error) {
	base, err := webcall.Address(o.Base)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the address of %s %w", o.Vendor, err).
			WithRemedy("write it as https://host; plain http is for this machine only")
	}
	c := &Client{Options: o, base: base}
	for name, s := range c.secrets() {
		if !s.FitsHeader() {
			return nil, extensions.Errorf(extensions.KindUnauthorized, "the credential of %s for the header %s is empty or has characters "+
				"that no key has", o.Vendor, name).WithRemedy("copy the key again, without spaces or line ends")
		}
	}
	c.Timeout, c.MaxBody = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.MaxBody, DefaultBody)
	if c.HTTP == nil {
		c.HTTP, err = webcall.Client(nil)
	}
	return c, err
}

// secrets are those of every call, by their header fields.
func (c *Client) secrets() map[string]extensions.Secret {
	all := map[string]extensions.Secret{}
	maps.Copy(all, c.Secrets)
	if !c.Bearer.IsZero() {
		all["Authorization"] = c.Bearer
	}
	return all
}

// Until is how long it is to a time that the vendor told, by its own clock: this machine's may differ. It is at most a second
// too long, for a date is cut to the second, and the answer's way; by this machine's clock before an answer had a date.
func (c *Client) Until(t time.Time) time.Duration {
	return t.Sub(time.Now().Add(time.Duration(c.ahead.Load())))
}

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Ask makes one call whose answer is a T, about what was asked for if is says so; nil = there is nothing to compare.
func Ask[T any](ctx context.Context, c *Client, k Call, is func(*T) bool) (*T, Answer, error) {
	out := new(T)
	k.Out = out
	if is != nil {
		k.Is = func() bool { return is(out) }
	}
	a, err := c.Do(ctx, k)
	return out, a, err
}

// Upload returns the body and the media type of a form with one file, which is read as the body is; written is closed when nothing
// reads it any more. A source that blocks is its owner's concern: who closes the body need not wait for it.
func Upload(field, name string, content io.Reader) (body io.ReadCloser, kind string, written <-chan struct{}) {
	from, to := io.Pipe()
	form, done := multipart.NewWriter(to), make(chan struct{})
	go func() {
		defer close(done)
		part, err := form.CreateFormFile(field, name)
		if err == nil {
			_, err = io.Copy(part, content)
		}
		if err == nil {
			err = form.Close()
		}
		_ = to.CloseWithError(err)
	}()
	return from, form.FormDataContentType(), done
}

// Call is one request.
type Call struct {
	Method string
	Path   []string // its parts, escaped one by one
	Query  url.Values
	In     any // sent as JSON; nil = Body
	// Body is sent as it is, of the media type; nil = none.
	Body   io.Reader
	Type   string
	Header http.Header // further fields of this call, by their canonical names; nil = none
	// Out is filled from JSON, a *[]byte gets the body as it is; nil = the answer's body does not matter.
	Out any
	// Is checks that the answer is about what was asked for; nil = there is nothing to compare.
	Is func() bool
	// Turn is the vendor's limit for calls of this kind, kept by waiting; nil = none. A call of another process
	// does not wait for it, so the vendor's own refusal still counts.
	Turn  *rate.Limiter
	Turns int // how many it takes; 0 = one
	// Begin is called when the turn has come, before In is written, which may so say what is true then. Its error ends the
	// call, and nothing is sent; nil = there is nothing to do.
	Begin   func() error
	Timeout time.Duration // of this call; 0 = the client's
}

// effect reports whether the call changes anything.
func (k Call) effect() bool { return k.Method != http.MethodGet && k.Method != http.MethodHead }

// Answer is what was heard.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // of an error, cut
	// Own says that the vendor itself answered, with a JSON object, and not something on the way.
	Own bool
	// RetryAfter is the wait that was asked for; Told says that there was one.
	RetryAfter time.Duration
	Told       bool
}

var errSlow = errors.New("there was no answer in time")

// Do makes one call. Its error is *extensions.Error. The answer is there whenever one was heard.
func (c *Client) Do(ctx context.Context, k Call) (Answer, error) {
	if k.Turn != nil {
		if err := k.Turn.WaitN(ctx, max(k.Turns, 1)); err != nil {
			return Answer{}, c.unsent(ctx, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return Answer{}, c.unsent(ctx, err)
	}
	if k.Begin != nil {
		if err := k.Begin(); err != nil {
			return Answer{}, err
		}
	}
	if k.In != nil {
		b, err := json.Marshal(k.In)
		if err != nil {
			return Answer{}, extensions.Errorf(extensions.KindInternal, "the request to %s cannot be written: %w", c.Vendor, err)
		}
		k.Body, k.Type = bytes.NewReader(b), "application/json"
	}
	limited, cancel := context.WithTimeoutCause(ctx, cmp.Or(k.Timeout, c.Timeout), errSlow)
	defer cancel()
	var sent webcall.Sent
	u, err := c.address(k)
	if err != nil {
		return Answer{}, err
	}
	req, err := http.NewRequestWithContext(sent.Watch(limited), k.Method, u, k.Body)
	if err != nil {
		return Answer{}, extensions.Errorf(extensions.KindInternal, "the request to %s: %w", c.Vendor, err)
	}
	for name, values := range c.Header {
		req.Header[name] = values
	}
	for name, s := range c.Secrets {
		req.Header.Set(name, s.Reveal())
	}
	if !c.Bearer.IsZero() {
		req.Header.Set("Authorization", "Bearer "+c.Bearer.Reveal())
	}
	for name, values := range k.Header {
		req.Header[name] = values
	}
	if k.Type != "" {
		req.Header.Set("Content-Type", k.Type)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return Answer{}, c.lost(ctx, k, sent.Maybe(), cause(limited, err))
	}
	defer func() { _ = resp.Body.Close() }()
	a := Answer{Status: resp.StatusCode, Header: resp.Header}
	a.RetryAfter, a.Told = webcall.RetryAfter(resp.Header)
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		c.ahead.Store(int64(time.Until(date)))
	}
	if a.Status < 200 || a.Status > 299 {
		a.Body, _ = io.ReadAll(io.LimitReader(resp.Body, maxError)) // for its words: what can be read
		a.Own = !webcall.IsPage(resp.Header) && json.Unmarshal(a.Body, &map[string]any{}) == nil
		return a, c.refused(k, a)
	}
	return a, c.read(ctx, limited, k, resp)
}

// address is the URL of a call.
func (c *Client) address(k Call) (string, error) {
	u := *c.base
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.EscapedPath(), "/")
	for _, p := range k.Path {
		if p == "" || p == "." || p == ".." {
			return "", extensions.Errorf(extensions.KindInvalid, "%q cannot be a part of an address at %s", p, c.Vendor)
		}
		u.Path, u.RawPath = u.Path+"/"+p, u.RawPath+"/"+url.PathEscape(p)
	}
	u.RawQuery = k.Query.Encode()
	return u.String(), nil
}

// cause prefers why a context ended to that it did.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	return err
}

// read takes the body of a success.
func (c *Client) read(ctx, limited context.Context, k Call, resp *http.Response) error {
	if webcall.IsPage(resp.Header) {
		return c.lost(ctx, k, k.effect(), errors.New("it answered with a web page"))
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, c.MaxBody+1))
	switch {
	case err != nil:
		return c.lost(ctx, k, true, fmt.Errorf("the answer broke off: %w", cause(limited, err)))
	case int64(len(b)) > c.MaxBody:
		return c.odd(k, "the answer has more than %d bytes", c.MaxBody)
	case k.Out == nil:
		return nil
	}
	if raw, ok := k.Out.(*[]byte); ok {
		*raw = b
	} else if err := json.Unmarshal(b, k.Out); err != nil {
		return c.odd(k, "the answer is not what its description promises: %s", c.words(err.Error()))
	}
	if k.Is != nil && !k.Is() {
		return c.odd(k, "the answer is about a different object")
	}
	return nil
}
