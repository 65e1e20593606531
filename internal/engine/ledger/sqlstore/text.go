package sqlstore

import (
	"errors"
	"strings"
	"unicode"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Limits of indexed texts in bytes: PostgreSQL refuses an index entry above 2704, and an entry may hold
// several texts.
const (
	maxKey  = 400 // of an operation, a sink, a grant
	maxName = 200 // of accounts, sandboxes, hosts, bindings, holders …
)

// plain requires a text that can be a key: not empty, not too long, without control characters.
func plain(what, v string) error {
	if v == "" || strings.ContainsFunc(v, unicode.IsControl) {
		return fault.Errorf(extensions.KindInvalid, "the %s %q is empty or has control characters", what, extensions.Clean(v, maxName))
	}
	return short(what, v, maxKey)
}

func short(what, v string, most int) error {
	if len(v) <= most {
		return nil
	}
	return fault.Errorf(extensions.KindInvalid, "the %s %q… has %d bytes; at most %d are accepted", what, extensions.Clean(v, 40), len(v),
		most).
		WithRemedy("choose a shorter one")
}

// indexed requires the indexed texts of a row to fit their indexes.
func indexed(s ledger.Sandbox) error {
	var errs []error
	for _, r := range []struct{ what, value string }{{"account", s.Account}, {"name", s.Name}, {"profile", s.Profile},
		{"extension", s.Extension}, {"host name", s.Host}} {
		errs = append(errs, short(r.what, r.value, maxName))
	}
	return errors.Join(errs...)
}
