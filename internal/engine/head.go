package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A pinned head is written ledger:stream:seq:hash; none of the parts has a colon.
func encodeHead(h ledger.Head) string {
	return fmt.Sprintf("%s:%s:%d:%s", h.Ledger, h.Stream, h.Seq, h.Hash)
}

// parseHead reads what encodeHead wrote; without a ledger it is of this one.
func parseHead(s, this string) (ledger.Head, error) {
	parts := strings.Split(s, ":")
	if len(parts) == 3 {
		parts = slices.Insert(parts, 0, this)
	}
	if len(parts) == 4 && parts[1] != "" && parts[3] != "" {
		if seq, err := strconv.ParseInt(parts[2], 10, 64); err == nil && seq > 0 {
			return ledger.Head{Ledger: parts[0], Stream: parts[1], Seq: seq, Hash: parts[3]}, nil
		}
	}
	return ledger.Head{}, invalid("%q is no pinned head of a ledger", "take a head of `sandboxer ledger verify` or of a receipt: ledger:stream:number:hash", extensions.Clean(s, 80))
}
