package chain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Pin returns the head as text: ledger:stream:seq:hash. No part has a colon.
func (h Head) Pin() string {
	return fmt.Sprintf("%s:%s:%d:%s", h.Ledger, h.Stream, h.Seq, h.Hash)
}

// ParsePin reads what [Head.Pin] wrote. If it names no ledger, it belongs to this.
func ParsePin(s, this string) (Head, error) {
	parts := strings.Split(s, ":")
	if len(parts) == 3 {
		parts = slices.Insert(parts, 0, this)
	}
	if len(parts) == 4 && parts[1] != "" && parts[3] != "" {
		if seq, err := strconv.ParseInt(parts[2], 10, 64); err == nil && seq > 0 {
			return Head{Ledger: parts[0], Stream: parts[1], Seq: seq, Hash: parts[3]}, nil
		}
	}
	return Head{}, extensions.Invalid("%q is not a pinned ledger head",
		"use a head from `sandboxer ledger verify` or from a receipt: ledger:stream:number:hash", extensions.Clean(s, 80))
}
