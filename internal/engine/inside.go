package engine

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// inside are the variables that commands of a sandbox expand, since only there
// it is known what they refer to; see extensions.Toolchain.EnvInside.
type inside struct {
	env     map[string]string
	service string // the one that gets the sandbox's variables; "" = each
}

// insideOf is that of a spec: what the request itself sets is not touched.
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

// insideFor is that of a sandbox as the ledger knows it, else as its receipt
// does.
func insideFor(row ledger.Sandbox, rec Receipt) inside {
	if len(row.Spec) > 0 {
		return insideOf(specOf(row))
	}
	return rec.inside()
}

func (r Receipt) inside() inside { return inside{env: r.EnvInside, service: r.EnvService} }

// wrap is req with the variables set first by the sandbox's shell, those
// excepted that req sets. Another service than theirs does not get them.
func (in inside) wrap(req ExecRequest) ExecRequest {
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

// probe is p with its command wrapped.
func (in inside) probe(p *extensions.Probe) *extensions.Probe {
	if p == nil || len(p.Command) == 0 {
		return p
	}
	out := *p
	out.Command = in.wrap(ExecRequest{Command: p.Command, Service: p.Service}).Command
	return &out
}

// script sets the variables, "" where there is none to set. All are expanded
// before any is set.
func (in inside) script(req ExecRequest) string {
	if req.Service != "" && in.service != "" && req.Service != in.service {
		return ""
	}
	var expand, export, unset strings.Builder
	for i, name := range slices.Sorted(maps.Keys(in.env)) {
		if _, set := req.Env[name]; set {
			continue
		}
		held := "sandboxer_env_" + strconv.Itoa(i)
		expand.WriteString(held + "=" + in.env[name] + "; ")
		export.WriteString(" " + name + `="$` + held + `"`)
		unset.WriteString(" " + held)
	}
	if expand.Len() == 0 {
		return ""
	}
	return expand.String() + "export" + export.String() + "; unset" + unset.String() + "; "
}
