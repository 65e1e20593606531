package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// HostHeld is KindConflict where the name of h is registered with other
// arguments, and nil where it is not or that cannot be known. It does not dial.
func (e *Engine) HostHeld(ctx context.Context, h Host) error {
	l, err := e.book.Reader(ctx)
	if err != nil {
		return nil //nolint:nilerr // whoever registers it is told
	}
	row, err := l.Host(ctx, e.account, h.Name)
	if err != nil || row.Ref == h.Ref() {
		return nil //nolint:nilerr // nobody holds it, as far as can be known
	}
	return registeredOtherwise(row, h)
}

// HostShared tells, as KindConflict, that h is registered already, as it is; nil
// where it is not or that cannot be known. It does not dial.
func (e *Engine) HostShared(ctx context.Context, h Host) error {
	l, err := e.book.Reader(ctx)
	if err != nil {
		return nil //nolint:nilerr // whoever registers it is told
	}
	row, err := l.Host(ctx, e.account, h.Name)
	if err != nil || row.Ref != h.Ref() {
		return nil //nolint:nilerr // nobody holds it, as far as can be known
	}
	return registeredTwice(row)
}

// registeredTwice says what it means that two states hold one host.
func registeredTwice(row ledger.Host) error {
	return extensions.Errorf(extensions.KindConflict, "host %q of account %s is registered already, with the same arguments, since %s, by another configuration or a state that was lost; "+
		"both hold it then: a change in one is a conflict in the other, and whichever is destroyed first is refused while sandboxes of the other live on it, or else forgets it for both",
		row.Name, row.Account, row.CreatedAt.UTC().Format(time.RFC3339)).
		WithRemedy("keep the sandboxer_host in one configuration, and let the sandboxes of others name it: hosts = [%q]; nothing has to be done where the other state is gone", row.Name)
}

// registeredOtherwise says what a host is registered as, and how h differs.
func registeredOtherwise(row ledger.Host, h Host) error {
	there, differs := "", ""
	if have, err := extensions.ParseHostRef(row.Ref); err == nil {
		there, differs = " as "+whereabout(have), "; different now: "+strings.Join(differences(have, h), ", ")
	}
	return extensions.Errorf(extensions.KindConflict, "host %q of account %s is registered already%s, since %s, by another configuration or a state that was lost%s",
		h.Name, row.Account, there, row.CreatedAt.UTC().Format(time.RFC3339), differs).
		WithRemedy("choose another name; to change that host, change it where it is managed, or take it over with `terraform import ADDRESS %s`, which gives it to this state, and apply again", h.Name)
}

// whereabout is where a host is, in few words.
func whereabout(h Host) string {
	switch s := h.SSH; {
	case s == nil:
		return "this machine"
	case s.Alias != "":
		return "the SSH alias " + extensions.Clean(s.Alias, 80)
	default:
		at := extensions.Clean(s.Address, 80)
		if s.User != "" {
			at = extensions.Clean(s.User, 80) + "@" + at
		}
		if s.Port != 0 {
			at = fmt.Sprintf("%s, port %d", at, s.Port)
		}
		return at
	}
}

// differences names the arguments in which two hosts differ, sorted.
func differences(a, b Host) []string {
	one, other := arguments(a), arguments(b)
	var names []string
	for name, value := range one {
		if !bytes.Equal(value, other[name]) {
			names = append(names, name)
		}
	}
	for name := range other {
		if _, had := one[name]; !had {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// arguments are those of a host that are set, by name.
func arguments(h Host) (out map[string]json.RawMessage) {
	if raw, err := json.Marshal(h); err != nil || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}
