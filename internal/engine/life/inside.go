package life

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// inside holds variables that the sandbox's own commands expand, since only there their references
// resolve; see extensions.Toolchain.EnvInside.
type inside struct {
	env     map[string]string
	service string // the service that gets the variables; "" = each
}

// insideOf returns the variables of a spec. What the request sets itself is left alone.
func insideOf(spec extensions.Spec) inside {
	in := inside{env: maps.Clone(spec.Toolchain.EnvInside), service: extensions.AgentService}
	if spec.Compose != nil {
		in.service = spec.Compose.Service
	}
	maps.DeleteFunc(in.env, func(name, _ string) bool {
		_, set := spec.Env[name]
		return set || spec.Delivery() == extensions.SecretsEnv && slices.Contains(spec.SecretNames, name)
	})
	if len(in.env) == 0 {
		return inside{}
	}
	return in
}

// insideFor returns the variables of a recorded sandbox, from the ledger or else from its receipt.
func insideFor(row ledger.Sandbox, rec plan.Receipt) inside {
	if len(row.Spec) > 0 {
		return insideOf(specOf(row))
	}
	return insideBy(rec)
}

func insideBy(rec plan.Receipt) inside { return inside{env: rec.EnvInside, service: rec.EnvService} }

// wrap returns req with the variables set first by the sandbox's shell, except those that req sets itself.
// Other services do not get them.
func (in inside) wrap(req extensions.ExecRequest) extensions.ExecRequest {
	first := in.script(req)
	switch {
	case first == "":
	case req.Shell == "":
		req.Command = append([]string{"/bin/sh", "-c", first + `exec "$@"`, "sh"}, req.Command...)
	case slices.Contains([]string{"", "sh", "/bin/sh"}, req.ShellPath):
		req.Shell = first + req.Shell
	default:
		req.Command = []string{"/bin/sh", "-c", first + `exec "$@"`, "sh", req.ShellPath, "-c", req.Shell}
		req.Shell, req.ShellPath = "", ""
	}
	return req
}

// probe returns p with its command wrapped.
func (in inside) probe(p *extensions.Probe) *extensions.Probe {
	if p == nil || len(p.Command) == 0 {
		return p
	}
	out := *p
	out.Command = in.wrap(extensions.ExecRequest{Command: p.Command, Service: p.Service}).Command
	return &out
}

// script returns shell code that sets the variables, "" if there are none. It expands all before setting
// any.
func (in inside) script(req extensions.ExecRequest) string {
	if req.Service != "" && in.service != "" && req.Service != in.service {
		return ""
	}
	var expand, export, unset strings.Builder
	for i, name := range slices.Sorted(maps.Keys(in.env)) {
		if _, set := req.Env[name]; set {
			continue
		}
		saved := "sandboxer_env_" + strconv.Itoa(i)
		expand.WriteString(saved + "=" + in.env[name] + "; ")
		export.WriteString(" " + name + `="$` + saved + `"`)
		unset.WriteString(" " + saved)
	}
	if expand.Len() == 0 {
		return ""
	}
	return expand.String() + "export" + export.String() + "; unset" + unset.String() + "; "
}
