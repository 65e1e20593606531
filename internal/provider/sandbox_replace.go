package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type diagnosticsList = diag.Diagnostics

func join(names []string) string { return strings.Join(names, ", ") }

// replacedArguments lists the changed arguments that need a new sandbox. moved says whether its host is no
// longer allowed.
//
// A profile is null in the state only after an import that could restore nothing: the configuration is then
// taken as it is, without replacement.
func (p *planning) replacedArguments(moved bool) []string {
	pl, st := p.plan, p.state
	if st.Profile.IsNull() {
		return nil
	}
	var out []string
	for _, a := range []struct {
		name    string
		changed bool
	}{
		{"profile", profileID(pl.Profile) != profileID(st.Profile) || pl.Profile.IsUnknown()},
		{"name", !pl.Name.Equal(st.Name)},
		{"name_prefix", prefixChanged(pl, *st)},
		{"hosts", moved},
		{"inputs", !sameInputs(pl.Inputs, st.Inputs)},
		{"env", !sameMap(pl.Env, st.Env)},
		{"secrets_wo_version", !pl.SecretsWOVersion.Equal(st.SecretsWOVersion)},
		{"scope", !pl.Scope.Equal(st.Scope) && !st.Scope.IsNull()},
		{"extension", !p.config.Extension.IsNull() && !p.config.Extension.Equal(st.Extension)},
		{"image", !pl.Image.Equal(st.Image)},
		{"resources", !sameSizes(pl, *st)},
		{"share_key", !pl.ShareKey.Equal(st.ShareKey)},
		{"consumer", pl.otherAgent(*st)},
		{"triggers", !sameMap(pl.Triggers, st.Triggers) && !pl.recreates(*st)},
		{"from_snapshot", !pl.FromSnapshot.Equal(st.FromSnapshot)},
		{"from_sandbox", !pl.FromSandbox.Equal(st.FromSandbox)},
	} {
		if a.changed {
			out = append(out, a.name)
		}
	}
	return out
}

// sameSizes compares the limits as they count.
func sameSizes(pl, st sandboxModel) bool {
	if pl.Resources.IsUnknown() {
		return false
	}
	a, b := pl.sizes(), st.sizes()
	return a == b || a != nil && b != nil && *a == *b
}

// recreates reports whether changed triggers make the sandbox again in place.
func (m sandboxModel) recreates(st sandboxModel) bool {
	return m.ReplaceMode.ValueString() == engine.ReplaceByRecreate && !sameMap(m.Triggers, st.Triggers)
}

// otherAgent reports that another agent is to use a sandbox that only one agent's resources hold.
func (m sandboxModel) otherAgent(st sandboxModel) bool {
	return m.Scope.ValueString() == "agent" && !m.harness().Equal(st.harness())
}

func (m sandboxModel) harness() attr.Value {
	if h, ok := m.Consumer.Attributes()["harness"]; ok {
		return h
	}
	return types.StringNull()
}

// profileID omits the version, which is compared as it resolves.
func profileID(s types.String) string {
	id, _, _ := strings.Cut(s.ValueString(), "@")
	return id
}

// prefixChanged reports whether the prefix asks for another name. Dropping it keeps the generated name, and
// so does a prefix the name already has.
func prefixChanged(pl, st sandboxModel) bool {
	switch {
	case pl.NamePrefix.IsUnknown():
		return true
	case pl.NamePrefix.IsNull(), pl.NamePrefix.Equal(st.NamePrefix):
		return false
	}
	return !strings.HasPrefix(st.Name.ValueString(), pl.NamePrefix.ValueString())
}

// sameMap treats null and {} as equal; anything unknown is a change.
func sameMap(a, b types.Map) bool {
	if a.IsUnknown() || b.IsUnknown() {
		return false
	}
	return len(a.Elements()) == 0 && len(b.Elements()) == 0 || a.Equal(b)
}

// hostsMoved reports whether the sandbox's host is no longer among the allowed ones. A changed price, label
// or priority of the same machine is no move. An unknown entry counts as another host unless a known one is
// the sandbox's own. Dropping the list gives up the machine, which may leave with it: Terraform plans again
// during apply and must not find a replacement it did not show.
func hostsMoved(ctx context.Context, current string, before, after types.List) bool {
	if after.Equal(before) {
		return false
	}
	if after.IsNull() {
		at, err := extensions.ParseHostRef(current)
		return err == nil && !at.Local // this machine stays the same without a name
	}
	if after.IsUnknown() {
		return true
	}
	var entries []types.String
	if after.ElementsAs(ctx, &entries, false).HasError() || len(entries) == 0 {
		return false
	}
	if current == "" {
		return unnamedMoved(entries)
	}
	var known []string
	for _, e := range entries {
		if !e.IsUnknown() {
			known = append(known, e.ValueString())
		}
	}
	return len(known) == 0 || engine.HostsMoved(engine.Receipt{Host: current}, known)
}

// unnamedMoved is for a sandbox on this machine without a host, or in a vendor's account: naming this machine
// is no move, naming another is.
func unnamedMoved(entries []types.String) bool {
	for _, e := range entries {
		if h, err := extensions.ParseHostRef(e.ValueString()); err == nil && h.Local {
			return false
		}
	}
	return true
}
