package engine

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/secretref"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Bounds of a request, beside those of the profile's own inputs and env.
const (
	maxEntries  = 256       // hosts, triggers, secrets
	maxHostRef  = 16 << 10  // bytes of one host ref
	maxTrigger  = 64 << 10  // bytes of one trigger
	maxConsumer = 256       // bytes of one field
	maxAmount   = 64        // bytes of an amount and its currency
	maxRequest  = 512 << 10 // bytes of it all as JSON
)

// checkRequest refuses what no profile and no place can make right. What
// profiles say about inputs, env, ttl and scope is checked when it is resolved.
func checkRequest(req Request) error {
	for _, err := range []error{
		checkNames(req), checkWords(req), checkOrigin(req), checkConsumer(req.Consumer), checkHostRefs(req.Hosts),
		checkTexts("triggers", req.Triggers), checkTexts("timeouts", req.Timeouts), checkSecrets(req.Secrets),
	} {
		if err != nil {
			return err
		}
	}
	if len(req.MaxCost) > maxAmount {
		return extensions.AtField("max_cost", extensions.Invalid("max_cost has %d bytes; at most %d are accepted", "write an amount and a currency, such as 1.00 USD", len(req.MaxCost), maxAmount))
	}
	if req.MaxCost != "" {
		if _, err := meter.ParseMoney(req.MaxCost); err != nil {
			return extensions.AtField("max_cost", extensions.Invalid("max_cost: %w", "write an amount and a currency, such as 1.00 USD", err))
		}
	}
	if n := len(mustJSON(req)); n > maxRequest {
		return extensions.Invalid("the request has %d bytes; at most %d are accepted", "pass large content as files of the workspace", n, maxRequest)
	}
	return nil
}

func checkNames(req Request) error {
	if req.Name != "" && req.NamePrefix != "" {
		return extensions.AtField("name", extensions.Invalid("name and name_prefix are both set", "set one of them"))
	}
	if req.Name != "" {
		return extensions.AtField("name", CheckName(req.Name))
	}
	if req.NamePrefix != "" && (CheckName(req.NamePrefix) != nil || len(req.NamePrefix) > maxName-randomSuffix) {
		return extensions.AtField("name_prefix", extensions.Invalid("name_prefix %q cannot start a name",
			"use letters, digits, '.', '_' and '-', at most 54 characters, starting with a letter or digit", extensions.Clean(req.NamePrefix, 80)))
	}
	return nil
}

func checkWords(req Request) error {
	for _, c := range []struct {
		field, value string
		allowed      []string
	}{
		{"on_conflict", req.OnConflict, []string{"error", "adopt"}},
		{"on_expiry", req.OnExpiry, []string{"replace", "keep"}},
		{"on_unreachable_destroy", req.OnUnreachableDestroy, []string{"fail", "forget"}},
		{"desired_mode", req.DesiredMode, []string{route.ModeRunning, route.ModePaused}},
		{"billing", req.Billing, []string{route.BillingPlatform, route.BillingBYOK}},
		{"consumer.actor", req.Consumer.Actor, []string{"adm", "agt", "atm"}},
	} {
		if c.value != "" && !slices.Contains(c.allowed, c.value) {
			return extensions.AtField(c.field, extensions.Invalid("%s: %q is not known", "use "+strings.Join(c.allowed, " or "), c.field, extensions.Clean(c.value, 80)))
		}
	}
	return nil
}

func checkOrigin(req Request) error {
	if req.FromSnapshot != "" && req.FromSandbox != "" {
		return extensions.AtField("from_snapshot", extensions.Invalid("from_snapshot and from_sandbox are both set", "a sandbox starts from one of them"))
	}
	if req.FromSnapshot != "" && !extensions.ValidSnapshotID(req.FromSnapshot) {
		return extensions.AtField("from_snapshot", extensions.Invalid("from_snapshot: %q is not a snapshot id", "use the id attribute of a sandboxer_snapshot", extensions.Clean(req.FromSnapshot, 80)))
	}
	if req.FromSandbox != "" {
		if _, err := extensions.ParseID(req.FromSandbox); err != nil {
			return extensions.AtField("from_sandbox", extensions.Invalid("from_sandbox: %q is not a sandbox id", "use the id attribute of a sandboxer_sandbox", extensions.Clean(req.FromSandbox, 80)))
		}
	}
	return nil
}

func checkConsumer(c Consumer) error {
	for _, f := range []struct{ field, value string }{{"harness", c.Harness}, {"run_id", c.RunID}, {"session_id", c.SessionID}, {"job_id", c.JobID}} {
		if len(f.value) > maxConsumer || !extensions.OneLine(f.value) {
			return extensions.AtField("consumer."+f.field, extensions.Invalid("consumer.%s is longer than %d bytes, or not one line of text", "shorten it to one line", f.field, maxConsumer))
		}
	}
	return nil
}

func checkHostRefs(refs []string) error {
	if len(refs) > maxEntries {
		return extensions.AtField("hosts", extensions.Invalid("hosts: %d are given; at most %d are accepted", "name fewer hosts", len(refs), maxEntries))
	}
	for i, ref := range refs {
		if len(ref) > maxHostRef || !extensions.IsText(ref) {
			return extensions.AtField("hosts", extensions.Invalid("hosts[%d] is longer than %d bytes, or no text", "use the ref attribute of a sandboxer_host, or a host's name", i, maxHostRef))
		}
	}
	return nil
}

func checkTexts(field string, m map[string]string) error {
	if len(m) > maxEntries {
		return extensions.AtField(field, extensions.Invalid("%s: %d entries; at most %d are accepted", "keep fewer", field, len(m), maxEntries))
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if len(k) > maxConsumer || !extensions.OneLine(k) || len(m[k]) > maxTrigger || !extensions.IsText(m[k]) {
			return extensions.AtField(field, extensions.Invalid("%s: the entry %q is too long (%d bytes), or no text", "use short text, such as a hash of the content", field, extensions.Clean(k, 80), len(m[k])))
		}
	}
	return nil
}

func checkSecrets(m map[string]Secret) error {
	if len(m) > maxEntries {
		return extensions.AtField("secrets_wo", extensions.Invalid("%d secrets are given; at most %d are accepted", "pass fewer", len(m), maxEntries))
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		v := m[k].Reveal()
		switch {
		case !extensions.ValidEnvName(k) || !utf8.ValidString(k) || len(k) > maxConsumer:
			return extensions.AtField("secrets_wo", extensions.Invalid("secrets: %q cannot be an environment variable", "names have no '=', spaces or control characters", extensions.Clean(k, 80)))
		case len(v) > secretref.MaxValueBytes || !extensions.IsText(v):
			return extensions.AtField("secrets_wo", extensions.Invalid("secrets: the value of %s is longer than 64 KiB, holds a NUL byte or is not UTF-8, which no environment variable can carry here",
				"encode binary content, for instance as base64", extensions.Clean(k, 80)))
		}
	}
	return nil
}
