package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
)

// shareSuffix is "-" and the digits of the digest in the name of a shared sandbox.
const shareSuffix = 11

// Shared reports whether several resources may hold a sandbox of this scope.
func Shared(scope string) bool { return scope == profile.ScopeAgent || scope == profile.ScopeShared }

// checkShare refuses what does not fit the scope of the sandbox: one that several hold is found by its share_key,
// which gives it its name, and no holder may decide alone what becomes of it.
func checkShare(req Request, scope string) *mistake {
	if !Shared(scope) {
		if req.ShareKey == "" {
			return nil
		}
		return &mistake{"share_key", "share_key is set, but the scope is session: nobody else can hold the sandbox",
			"set scope to agent or shared, or remove share_key"}
	}
	switch key := req.ShareKey; {
	case key == "" && scope == profile.ScopeShared:
		return &mistake{"share_key", "the scope is shared, and no share_key says with whom", "set share_key to a name that all holders give"}
	case key == "" && req.Consumer.Harness == "":
		return &mistake{"share_key", "the scope is agent, and nothing says which agent", "set consumer.harness, or share_key"}
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
		return own("on_conflict", "those who give its share_key hold it together")
	case req.FromSandbox != "":
		return own("from_sandbox", "a fork is a sandbox of its own")
	case req.DesiredMode == string(ledger.Paused):
		return own("desired_mode", "pausing it stops what the other holders run")
	}
	return nil
}

// shareName returns the name of a sandbox that several hold, by which each of them finds it: equal for equal scope,
// profile, share_key and, in the scope of an agent, agent.
func shareName(req Request, scope string) string {
	id, _, _ := strings.Cut(req.Profile, "@")
	key := []string{scope, id, req.ShareKey}
	start := req.ShareKey
	if scope == profile.ScopeAgent {
		key = append(key, req.Consumer.Harness)
	}
	if start == "" {
		start = scope
	}
	text, _ := json.Marshal(key) //nolint:errchkjson // of texts
	sum := sha256.Sum256(text)
	return start + "-" + hex.EncodeToString(sum[:])[:shareSuffix-1]
}
