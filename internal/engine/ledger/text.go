package ledger

import (
	"errors"
	"strings"
	"unicode"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What stands in an index is bounded, in bytes: PostgreSQL refuses an entry of
// more than 2704, and an entry may have several texts.
const (
	maxKey  = 400 // of an operation, a sink, a grant
	maxName = 200 // of accounts, sandboxes, hosts, bindings, holders …
)

// plain demands a text that can be a key: not empty, not too long, without
// control characters.
func plain(what, v string) error {
	if v == "" || strings.ContainsFunc(v, unicode.IsControl) {
		return failuref(extensions.KindInvalid, "the %s %q is empty or has control characters", what, extensions.Clean(v, maxName))
	}
	return short(what, v, maxKey)
}

func short(what, v string, most int) error {
	if len(v) <= most {
		return nil
	}
	return failuref(extensions.KindInvalid, "the %s %q… has %d bytes, and %d is the most", what, extensions.Clean(v, 40), len(v), most).
		WithRemedy("choose a shorter one")
}

// indexed demands that what the row has in indexes fits there.
func (s Sandbox) indexed() error {
	var errs []error
	for _, r := range []struct{ what, value string }{{"account", s.Account}, {"name", s.Name}, {"profile", s.Profile}, {"extension", s.Extension}, {"host name", s.Host}} {
		errs = append(errs, short(r.what, r.value, maxName))
	}
	return errors.Join(errs...)
}
