package httpledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	// prefix of every operation's path; the number is that of the protocol.
	prefix = "/v1/ledger/"

	headerRequest = "X-Request-Id"
	contentType   = "application/json"

	// maxRequest bounds a request's body: a manifest of a large workspace fits.
	maxRequest = 16 << 20
	// maxAnswer bounds what a client reads of an answer.
	maxAnswer = 256 << 20
	// page is how many rows one answer has, where there may be many.
	page = 500
)

// encode writes JSON as it is stored: nothing in it is escaped for HTML.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// decode reads exactly one value, without fields that are not known. Documents
// that are nil are left out where they are written: null is a value of theirs.
func decode(r io.Reader, v any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the value")
	}
	return nil
}

// checkText refuses text that JSON cannot carry as it is: it would arrive as
// another one.
func checkText(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return errors.New("a text has broken UTF-8")
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return checkText(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := checkText(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if !utf8.Valid(v.Bytes()) {
				return errors.New("a document has broken UTF-8")
			}
			return nil
		}
		for i := range v.Len() {
			if err := checkText(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := errors.Join(checkText(it.Key()), checkText(it.Value())); err != nil {
				return err
			}
		}
	}
	return nil
}

// failure is an error on its way: the contract's fields, the text, and of the
// ledger's own errors the one that it is.
type failure struct {
	Kind       extensions.Kind
	Op         string        `json:",omitempty"`
	ID         extensions.ID `json:",omitempty"`
	Field      string        `json:",omitempty"`
	Remedy     string        `json:",omitempty"`
	RetryAfter time.Duration `json:",omitempty"`
	Text       string

	NameTaken    *ledger.NameTaken    `json:",omitempty"`
	Stale        *ledger.Stale        `json:",omitempty"`
	Busy         *ledger.Busy         `json:",omitempty"`
	Full         *ledger.Full         `json:",omitempty"`
	Insufficient *ledger.Insufficient `json:",omitempty"`
	Unpriced     *ledger.Unpriced     `json:",omitempty"`
	TooFast      *ledger.TooFast      `json:",omitempty"`
	Forbidden    *ledger.Forbidden    `json:",omitempty"`
}

// asFailure takes an error apart.
func asFailure(err error) failure {
	f := failure{Kind: extensions.KindOf(err), Remedy: extensions.RemedyOf(err), Field: extensions.FieldOf(err), Text: err.Error()}
	var e *extensions.Error
	if errors.As(err, &e) {
		f.RetryAfter = e.RetryAfter
		if e.Err != nil && e.Error() == err.Error() { // the outermost: its parts are put together again there
			f.Op, f.ID, f.Text = e.Op, e.ID, e.Err.Error()
		}
	}
	errors.As(err, &f.NameTaken)
	errors.As(err, &f.Stale)
	errors.As(err, &f.Busy)
	errors.As(err, &f.Full)
	errors.As(err, &f.Insufficient)
	errors.As(err, &f.Unpriced)
	errors.As(err, &f.TooFast)
	errors.As(err, &f.Forbidden)
	return f
}

// told is an error of the server as it is here.
type told struct {
	text  string
	cause error
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.cause }

func (f failure) err() error {
	t := &told{text: extensions.Clean(f.Text, 4000)}
	switch {
	case f.NameTaken != nil:
		t.cause = f.NameTaken
	case f.Stale != nil:
		t.cause = f.Stale
	case f.Busy != nil:
		t.cause = f.Busy
	case f.Full != nil:
		t.cause = f.Full
	case f.Insufficient != nil:
		t.cause = f.Insufficient
	case f.Unpriced != nil:
		t.cause = f.Unpriced
	case f.TooFast != nil:
		t.cause = f.TooFast
	case f.Forbidden != nil:
		t.cause = f.Forbidden
	}
	return &extensions.Error{Kind: f.Kind, Op: f.Op, ID: f.ID, Field: f.Field, RetryAfter: f.RetryAfter,
		Remedy: extensions.Clean(f.Remedy, 1000), Err: t}
}

// statusOf is the answer's status for programs in between: what may pass is 503
// and 429, what nobody planned for 500, all else a refusal.
func statusOf(kind extensions.Kind) int {
	switch kind {
	case extensions.KindUnauthorized:
		return http.StatusForbidden
	case extensions.KindNotFound:
		return http.StatusNotFound
	case extensions.KindConflict, extensions.KindExhausted:
		return http.StatusConflict
	case extensions.KindInvalid, extensions.KindUnsupported:
		return http.StatusUnprocessableEntity
	case extensions.KindUnavailable, extensions.KindTimeout:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// oops is an error of this package about the ledger at address.
func oops(kind extensions.Kind, format string, args ...any) *extensions.Error {
	return &extensions.Error{Kind: kind, Op: "ledger", Err: fmt.Errorf(format, args...)}
}
