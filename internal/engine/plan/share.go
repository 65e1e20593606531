package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
)

// shareSuffix is "-" and the digits of the digest in the name of a shared sandbox.
const shareSuffix = 11

// Shared reports whether several resources may hold a sandbox of this scope.
func Shared(scope string) bool { return scope == profile.ScopeAgent || scope == profile.ScopeShared }

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
