package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// unsent is the error of a call that never left because its context ended.
func (c *Client) unsent(ctx context.Context, err error) error {
	if ctx.Err() == nil { // the limiter foresees that the deadline comes first
		return extensions.Errorf(extensions.KindUnavailable, "calls to %s must wait: %s", c.Vendor, c.words(err.Error())).
			WithRemedy("try again later, or create fewer at once (terraform apply -parallelism)")
	}
	return fmt.Errorf("nothing was sent to %s: %w", c.Vendor, ctx.Err())
}

// lost is the error of a call without a usable answer. maybe says that its request may have arrived.
func (c *Client) lost(ctx context.Context, k Call, maybe bool, err error) error {
	said := errors.New(c.words(err.Error()))
	switch {
	case maybe && k.effect():
		return extensions.Errorf(extensions.KindIndeterminate, "it is unknown whether %s did it: %w", c.Vendor, said)
	case ctx.Err() != nil:
		return extensions.Errorf(extensions.KindOf(ctx.Err()), "no answer from %s: %w", c.Vendor, ctx.Err())
	}
	remedy := "check the network, and the address if you changed it"
	if webcall.Untrusted(err) {
		remedy = "check the address: its certificate is not trusted"
	}
	return extensions.Errorf(extensions.KindUnreachable, "%s at %s does not answer: %w", c.Vendor, c.base.Host, said).WithRemedy("%s", remedy)
}

// odd is the error of an answer that its description does not allow for.
func (c *Client) odd(k Call, format string, args ...any) error {
	kind := extensions.KindInternal
	if k.effect() {
		kind = extensions.KindIndeterminate
	}
	return extensions.Errorf(kind, "%s: %w", c.Vendor, fmt.Errorf(format, args...)).
		WithRemedy("check the address of the vendor; if it is right, report this")
}

// refused is the error of an answer that is none of success.
func (c *Client) refused(k Call, a Answer) error {
	var kind extensions.Kind
	remedy := ""
	if c.Judge != nil && a.Own {
		kind, remedy = c.Judge(a)
	}
	if kind == "" {
		kind, remedy = general(k, a)
	}
	e := extensions.Errorf(kind, "%s answered %d %s%s", c.Vendor, a.Status, http.StatusText(a.Status), c.told(a)).WithRemedy("%s", remedy)
	if kind == extensions.KindUnavailable {
		e.RetryAfter = a.RetryAfter
	}
	return e
}

// general says what an answer means by the rules of HTTP.
func general(k Call, a Answer) (kind extensions.Kind, remedy string) {
	const elsewhere = "check the address: something else answers there"
	may := extensions.KindUnavailable // after an answer that does not exclude that it was done
	if k.effect() {
		may = extensions.KindIndeterminate
	}
	switch s := a.Status; {
	case s < 200, s >= 300 && s < 400, s == http.StatusProxyAuthRequired:
		return extensions.KindUnreachable, elsewhere
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		return extensions.KindUnauthorized, "check the credential: it is wrong, has expired, or is not allowed to do this"
	case s == http.StatusTooManyRequests, s == http.StatusTooEarly:
		return extensions.KindUnavailable, "try again later, or create fewer at once (terraform apply -parallelism)"
	case s == http.StatusServiceUnavailable && a.Own:
		return extensions.KindUnavailable, "try again later"
	case s == http.StatusNotImplemented && a.Own:
		return extensions.KindUnsupported, ""
	case s >= 500, s == http.StatusRequestTimeout:
		return may, "try again later"
	case !a.Own: // a gateway, or another program: what it says of an object says nothing
		return extensions.KindUnreachable, elsewhere
	case s == http.StatusNotFound, s == http.StatusGone:
		return extensions.KindNotFound, ""
	case s == http.StatusConflict, s == http.StatusPreconditionFailed, s == http.StatusLocked:
		return extensions.KindConflict, ""
	case s == http.StatusPaymentRequired:
		return extensions.KindExhausted, "check the account's balance and plan"
	}
	return extensions.KindInvalid, ""
}

// Message is the text of an error answer of the usual shape; "" for another.
func (a Answer) Message() string {
	var said struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(a.Body, &said)
	return said.Message
}

// told is what the vendor said, for a message.
func (c *Client) told(a Answer) string {
	if !a.Own {
		return ""
	}
	_, text := a.Said()
	if text = c.words(text); text == "" {
		return ""
	}
	return ": " + text
}

// Said is the code and the text of an error answer, of the usual shapes: message, and error with a text or with code and
// message. Other shapes say nothing.
func (a Answer) Said() (code, text string) {
	var said struct {
		Message string          `json:"message"`
		Error   json.RawMessage `json:"error"`
	}
	var e struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(a.Body, &said)
	if json.Unmarshal(said.Error, &e) != nil {
		_ = json.Unmarshal(said.Error, &e.Message)
	}
	return e.Code, cmp.Or(said.Message, e.Message)
}

// words makes the other side's text fit a message: short, without control characters or the account's secrets.
func (c *Client) words(text string) string {
	for _, s := range c.secrets() {
		text = strings.ReplaceAll(text, s.Reveal(), "…")
	}
	return strings.TrimSpace(extensions.Clean(text, maxWords))
}
