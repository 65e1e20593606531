package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// CheckSource refuses, with KindInvalid, a fork of a sandbox that is of another account or cannot be used, and one whose
// spec is not its source's. A fork may differ in its name, lifetime, mode, scope and secrets.
func (a *Asked) CheckSource(source ledger.Sandbox, account string, now time.Time) error {
	refuse := func(remedy, format string, args ...any) error {
		return extensions.AtField("from_sandbox",
			extensions.Errorf(extensions.KindInvalid, "sandbox "+string(source.ID)+" cannot be forked: "+format, args...).WithRemedy("%s", remedy))
	}
	const another = "choose a live sandbox, or remove from_sandbox"
	switch {
	case source.Account != account:
		return refuse("fork it in its own account", "it belongs to the account %s, not to %s", source.Account, account)
	case source.State == lifecycle.Destroyed, source.State == lifecycle.Expired:
		return refuse(another, "it has ended")
	case lifecycle.Usable(source.State) && lifecycle.Overdue(now, source.ExpiresAt):
		return refuse(another, "it ended at %s", source.ExpiresAt.UTC().Format(time.RFC3339))
	case !lifecycle.Usable(source.State):
		return refuse(another, "it is %s", lifecycle.Shown(source.State))
	}
	differs := a.differsFrom(source)
	if len(differs) == 0 {
		return nil
	}
	err := extensions.Errorf(extensions.KindInvalid, "a fork must have the spec of its source, and this one differs from sandbox %s "+
		"(%s@%s) in %s",
		source.ID, source.Profile, source.ProfileVersion, strings.Join(differs, ", "))
	field := "profile"
	if slices.Contains([]string{"inputs", "env"}, differs[0]) {
		field = differs[0]
	}
	return extensions.AtField(field,
		err.WithRemedy("use the source's, or take a sandboxer_snapshot of the source and set from_snapshot to it"))
}

// differsFrom lists what the spec of a fork has otherwise than its source; the profile and the arguments first, alone
// where the rest follows from them.
func (a *Asked) differsFrom(source ledger.Sandbox) []string {
	own, was := a.SpecAt(source.Extension), extensions.Spec{}
	if json.Unmarshal(source.Spec, &was) != nil {
		return []string{"the spec, which the ledger does not have"}
	}
	own.FromSandbox, own.FromSnapshot, own.SecretNames, own.Scope = was.FromSandbox, was.FromSnapshot, was.SecretNames, was.Scope
	if own.Hash() == source.SpecHash {
		return nil
	}
	if own.Profile != was.Profile {
		return []string{"profile"}
	}
	if own.Version != was.Version {
		return []string{"the profile's version"}
	}
	own.Options = nil // the ledger has none
	one, other := values(own), values(was)
	var first, rest []string
	for _, name := range []string{"inputs", "env"} {
		if !reflect.DeepEqual(one[name], other[name]) {
			first = append(first, name)
		}
		delete(one, name)
		delete(other, name)
	}
	if len(first) > 0 {
		return first
	}
	for name, v := range one {
		if !reflect.DeepEqual(v, other[name]) {
			rest = append(rest, name)
		}
		delete(other, name)
	}
	for name := range other {
		rest = append(rest, name)
	}
	if len(rest) == 0 {
		return []string{"options"}
	}
	slices.Sort(rest)
	return rest
}

func values(s extensions.Spec) (out map[string]any) {
	if text, err := json.Marshal(s); err == nil { // it came from JSON or YAML
		_ = json.Unmarshal(text, &out)
	}
	return out
}
