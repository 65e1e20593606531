package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/secretref"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Limits of a request, beyond those of the profile's own inputs and env.
const (
	maxEntries  = 256       // hosts, triggers, secrets
	maxTrigger  = 64 << 10  // bytes of one trigger
	maxConsumer = 256       // bytes of one field
	maxAmount   = 64        // bytes of an amount with its currency
	maxRequest  = 512 << 10 // bytes of the whole request as JSON
)

// mistake is an error in one argument of a request.
type mistake struct {
	field string // "" = the request as a whole
	what  string
	next  string
}

func (m *mistake) err() error {
	return extensions.AtField(m.field, extensions.Errorf(extensions.KindInvalid, "%s", m.what).WithRemedy("%s", m.next))
}

// shown returns a word of the request for a message.
func shown(word string) string { return extensions.Clean(word, 80) }

// Check returns KindInvalid for a request that is wrong with any profile and place. [Ask] checks what profiles
// say about inputs, env, ttl and scope.
func (r Request) Check() error {
	for _, m := range []*mistake{
		checkNames(r), checkWords(r), checkOrigin(r), checkConsumer(r.Consumer), checkHostRefs(r.Hosts),
		checkTexts("triggers", r.Triggers), checkTexts("timeouts", r.Timeouts), checkSecrets(r.Secrets), checkMaxCost(r.MaxCost), checkSize(r),
	} {
		if m != nil {
			return m.err()
		}
	}
	return nil
}

func checkNames(r Request) *mistake {
	switch {
	case r.Name != "" && r.NamePrefix != "":
		return &mistake{"name", "name conflicts with name_prefix", "set one of them"}
	case r.Name != "":
		if err := profile.CheckName(r.Name); err != nil {
			return &mistake{"name", err.Error(), extensions.RemedyOf(err)}
		}
	case r.NamePrefix != "" && (profile.CheckName(r.NamePrefix) != nil || len(r.NamePrefix) > maxName-randomSuffix):
		return &mistake{"name_prefix", fmt.Sprintf("name_prefix %q cannot start a name", shown(r.NamePrefix)),
			"use letters, digits, '.', '_' and '-', at most 54 characters, starting with a letter or digit"}
	}
	return nil
}

func checkWords(r Request) *mistake {
	for _, c := range []struct {
		field, value string
		allowed      []string
	}{
		{"on_conflict", r.OnConflict, []string{"error", "adopt", OnConflictReuse}},
		{"isolation", r.Isolation, levels()},
		{"on_expiry", r.OnExpiry, []string{"replace", "keep"}},
		{"on_unreachable_destroy", r.OnUnreachableDestroy, []string{"fail", "forget"}},
		{"replace_mode", r.ReplaceMode, []string{"replace", ReplaceByRecreate}},
		{"desired_mode", r.DesiredMode, []string{route.ModeRunning, route.ModePaused}},
		{"billing", r.Billing, []string{route.BillingPlatform, route.BillingBYOK}},
		{"consumer.actor", r.Consumer.Actor, []string{"adm", "agt", "atm"}},
	} {
		if c.value != "" && !slices.Contains(c.allowed, c.value) {
			return &mistake{c.field, fmt.Sprintf("%s: %q is unknown", c.field, shown(c.value)), "use " + strings.Join(c.allowed, " or ")}
		}
	}
	return nil
}

func levels() (names []string) {
	for _, l := range extensions.IsolationLevels {
		names = append(names, string(l))
	}
	return names
}

func checkOrigin(r Request) *mistake {
	if r.FromSnapshot != "" && r.FromSandbox != "" {
		return &mistake{"from_snapshot", "from_snapshot conflicts with from_sandbox", "set one of them"}
	}
	if r.FromSnapshot != "" && !extensions.ValidSnapshotID(r.FromSnapshot) {
		return &mistake{"from_snapshot", fmt.Sprintf("from_snapshot: %q is not a snapshot ID", shown(r.FromSnapshot)),
			"use the id attribute of a sandboxer_snapshot"}
	}
	if _, err := extensions.ParseID(r.FromSandbox); r.FromSandbox != "" && err != nil {
		return &mistake{"from_sandbox", fmt.Sprintf("from_sandbox: %q is not a sandbox ID", shown(r.FromSandbox)),
			"use the id attribute of a sandboxer_sandbox"}
	}
	return nil
}

func checkConsumer(c Consumer) *mistake {
	for _, f := range []struct{ field, value string }{{"harness", c.Harness}, {"run_id", c.RunID}, {"session_id", c.SessionID},
		{"job_id", c.JobID}} {
		if len(f.value) > maxConsumer || !extensions.OneLine(f.value) {
			return &mistake{"consumer." + f.field, fmt.Sprintf("consumer.%s is longer than %d bytes, or not one line of text", f.field, maxConsumer),
				"shorten it to one line"}
		}
	}
	return nil
}

func checkHostRefs(refs []string) *mistake {
	if len(refs) > maxEntries {
		return &mistake{"hosts", fmt.Sprintf("hosts: %d entries; at most %d are accepted", len(refs), maxEntries), "list fewer hosts"}
	}
	for i, ref := range refs {
		if len(ref) > extensions.MaxHostRef || !extensions.IsText(ref) {
			return &mistake{"hosts", fmt.Sprintf("hosts[%d] is longer than %d bytes, or not text", i, extensions.MaxHostRef),
				"use the ref attribute of a sandboxer_host, or a host's name"}
		}
	}
	return nil
}

func checkTexts(field string, m map[string]string) *mistake {
	if len(m) > maxEntries {
		return &mistake{field, fmt.Sprintf("%s: %d entries; at most %d are accepted", field, len(m), maxEntries), "use fewer entries"}
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if len(k) > maxConsumer || !extensions.OneLine(k) || len(m[k]) > maxTrigger || !extensions.IsText(m[k]) {
			return &mistake{field, fmt.Sprintf("%s: the entry %q is too long (%d bytes), or not text", field, shown(k), len(m[k])),
				"use short text, such as a hash of the content"}
		}
	}
	return nil
}

func checkSecrets(m map[string]extensions.Secret) *mistake {
	if len(m) > maxEntries {
		return &mistake{"secrets_wo", fmt.Sprintf("%d secrets; at most %d are accepted", len(m), maxEntries), "pass fewer"}
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		v := m[k].Reveal()
		switch {
		case !extensions.ValidEnvName(k) || !utf8.ValidString(k) || len(k) > maxConsumer:
			return &mistake{"secrets_wo", fmt.Sprintf("secrets: %q is not an environment variable name", shown(k)),
				"names have no '=', spaces or control characters"}
		case len(v) > secretref.MaxValueBytes || !extensions.IsText(v):
			return &mistake{"secrets_wo", fmt.Sprintf("secrets: the value of %s is longer than 64 KiB, contains a NUL byte or is not UTF-8",
				shown(k)),
				"encode binary content, for instance as base64"}
		}
	}
	return nil
}

func checkMaxCost(amount string) *mistake {
	const next = "write an amount and a currency, such as 1.00 USD"
	if len(amount) > maxAmount {
		return &mistake{"max_cost", fmt.Sprintf("max_cost has %d bytes; at most %d are accepted", len(amount), maxAmount), next}
	}
	if _, err := meter.ParseMoney(amount); amount != "" && err != nil {
		return &mistake{"max_cost", "max_cost: " + err.Error(), next}
	}
	return nil
}

func checkSize(r Request) *mistake {
	body, err := json.Marshal(r)
	if err != nil {
		return &mistake{"inputs", "the request cannot be encoded: " + err.Error(), "use strings, numbers, booleans, lists and maps"}
	}
	if len(body) > maxRequest {
		return &mistake{"", fmt.Sprintf("the request has %d bytes; at most %d are accepted", len(body), maxRequest),
			"pass large content as files of the workspace"}
	}
	return nil
}

// checkShare refuses what does not fit the scope of the sandbox: one that several hold is found by its share_key,
// which gives it its name, and no holder may decide alone what becomes of it.
func checkShare(req Request, scope string) *mistake {
	if !Shared(scope) {
		if req.ShareKey == "" {
			return nil
		}
		return &mistake{"share_key", "share_key is set, but a sandbox of scope session cannot be shared",
			"set scope to agent or shared, or remove share_key"}
	}
	switch key := req.ShareKey; {
	case key == "" && scope == profile.ScopeShared:
		return &mistake{"share_key", "the scope is shared, but share_key is not set", "set share_key to a name that all holders use"}
	case key == "" && req.Consumer.Harness == "":
		return &mistake{"share_key", "the scope is agent, but no agent is named", "set consumer.harness, or share_key"}
	case key != "" && profile.CheckName(key) != nil, len(key) > maxName-shareSuffix:
		return &mistake{"share_key", fmt.Sprintf("share_key %q cannot start a name", shown(key)),
			fmt.Sprintf("use letters, digits, '.', '_' and '-', at most %d characters, starting with a letter or digit", maxName-shareSuffix)}
	}
	own := func(field, why string) *mistake {
		return &mistake{field, fmt.Sprintf("%s does not fit scope %s: %s", field, scope, why), "remove it, or set scope to session"}
	}
	switch {
	case req.Name != "" && req.Name != shareName(req, scope):
		return own("name", "the share_key names the sandbox")
	case req.NamePrefix != "":
		return own("name_prefix", "the share_key names the sandbox")
	case req.OnConflict == "adopt", req.OnConflict == OnConflictReuse:
		return own("on_conflict", "all holders of its share_key share it")
	case req.FromSandbox != "":
		return own("from_sandbox", "a fork is a sandbox of its own")
	case req.DesiredMode == string(ledger.Paused):
		return own("desired_mode", "pausing it would stop the other holders' work")
	}
	return nil
}
