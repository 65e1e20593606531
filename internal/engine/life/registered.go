package life

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// registeredTwice explains what it means that two states hold one host.
func registeredTwice(row ledger.Host) error {
	return extensions.Errorf(extensions.KindConflict,
		"another configuration, or a lost state, registered host %q of account %s with the same arguments at %s. Both now own it: a change "+
			"in one conflicts with the other, and the first destroy removes it for both, unless live sandboxes run on it",
		row.Name, row.Account, row.CreatedAt.UTC().Format(time.RFC3339)).
		WithRemedy("keep the sandboxer_host in one configuration and use hosts = [%q] in the others; if the other state is gone, do nothing",
			row.Name)
}

// registeredOtherwise says how the registered host differs from h.
func registeredOtherwise(row ledger.Host, h extensions.Host) error {
	there, differs := "", ""
	if have, err := extensions.ParseHostRef(row.Ref); err == nil {
		there, differs = " as "+whereabout(have), "; different now: "+strings.Join(differences(have, h), ", ")
	}
	return extensions.Errorf(extensions.KindConflict,
		"another configuration, or a lost state, registered host %[1]q of account %[2]s%[3]s at %[4]s%[5]s",
		h.Name, row.Account, there, row.CreatedAt.UTC().Format(time.RFC3339), differs).
		WithRemedy("choose another name; or change the host in its own configuration; or take it over with `terraform import ADDRESS %s` and "+
			"apply again", h.Name)
}

// whereabout says briefly where a host is.
func whereabout(h extensions.Host) string {
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
func differences(a, b extensions.Host) []string {
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

// arguments returns the arguments of a host that are set, by name.
func arguments(h extensions.Host) (out map[string]json.RawMessage) {
	if raw, err := json.Marshal(h); err != nil || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}
