package composessh

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// keptTime is how long our own shell must have run: if it ends, it ends at once.
const keptTime = 300 * time.Millisecond

// settleTime is how long what a sandbox starts must have run. An idle image runs no
// command of its own here.
func settleTime(spec extensions.Spec) time.Duration {
	c := spec.Containers
	if spec.Entrypoint.Idle() && spec.Compose == nil && (c == nil || len(c.Services) == 0 && len(c.Agent.Command) == 0) {
		return keptTime
	}
	return time.Duration(spec.Settle)
}

// answerTime is what a wait leaves of its caller's time, at most, for the answer that says why it failed: a busy host needs it.
const answerTime = 15 * time.Second

// probeVars are the variables of sh/readiness.sh: probe_kind is command, http,
// tcp or empty; probe_command are shell words for eval, probe_target is the URL
// or host:port as seen inside; times are in hundredths of a second.
func probeVars(p *extensions.Probe) map[string]string {
	vars := map[string]string{"probe_kind": "", "probe_service": "", "probe_command": "", "probe_target": "",
		"probe_interval": centis(ready.Interval), "probe_limit": centis(ready.Timeout)}
	if p == nil {
		return vars
	}
	vars["probe_service"] = p.Service
	switch {
	case len(p.Command) > 0:
		vars["probe_kind"] = "command"
		words := make([]string, len(p.Command))
		for i, w := range p.Command {
			words[i] = shtext.Quote(w)
		}
		vars["probe_command"] = strings.Join(words, " ")
	case p.HTTP != "":
		vars["probe_kind"], vars["probe_target"] = "http", p.HTTP
	case p.TCP != "":
		vars["probe_kind"], vars["probe_target"] = "tcp", p.TCP
	}
	if p.Interval > 0 {
		vars["probe_interval"] = centis(time.Duration(p.Interval))
	}
	if p.Timeout > 0 {
		vars["probe_limit"] = centis(time.Duration(p.Timeout))
	}
	return vars
}

// WaitReady implements extensions.Backend. Provision already waits; this covers what it left waiting, and
// sandboxes that somebody else created.
func (b *Backend) WaitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	o, err := b.waitReady(ctx, spec, h)
	return o, failed("wait", h.ID, err)
}

func (b *Backend) waitReady(ctx context.Context, spec extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	var none extensions.Observation
	at, err := b.resolve(h)
	if err != nil {
		return none, err
	}
	limit := b.settings.createTimeout
	if end, ok := ctx.Deadline(); ok {
		// What the service printed last arrives only if the host's side ends first.
		left := max(time.Until(end), 0)
		limit = min(limit, left-min(left/4, answerTime))
	}
	vars := probeVars(spec.Readiness)
	maps.Copy(vars, map[string]string{"root": at.root, "limit": centis(limit), "settle": centis(settleTime(spec)),
		"lock_wait": formatInt(int64(limit/time.Second) + 1)})
	a, err := b.call(ctx, operation{id: at.id, files: waitFiles, vars: vars})
	if err != nil {
		return none, err
	}
	o := b.observeOne(h, a)
	if o.Phase != extensions.PhaseReady {
		return none, extensions.Errorf(extensions.KindNotFound, "%s is %s: %s", h.ID, o.Phase, o.Reason)
	}
	return o, nil
}

// waitFiles make up the operation wait.
var waitFiles = []string{"lease", "look", "await", "toolbox", "readiness", "wait"}
