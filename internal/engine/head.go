package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// withoutSpools leaves out heads of spools that stood in for l: sandboxes made
// while it could not be reached have receipts of those. One that is kept on this
// machine is checked in its place; of others l itself says that they were
// brought in.
func (e *Engine) withoutSpools(ctx context.Context, l ledger.Ledger, heads []ledger.Head, v *Verified) ([]ledger.Head, error) {
	var own []ledger.Head
	foreign := map[string][]ledger.Head{}
	for _, h := range heads {
		if h.Ledger == l.ID() {
			own = append(own, h)
		} else {
			foreign[h.Ledger] = append(foreign[h.Ledger], h)
		}
	}
	if len(foreign) == 0 {
		return own, nil
	}
	if err := e.checkSpools(ctx, foreign, v); err != nil {
		return nil, err
	}
	brought := broughtIn{ctx: ctx, l: l}
	for id, hs := range foreign {
		for _, h := range hs {
			known, err := brought.from(h.Stream, id)
			if err != nil {
				return nil, err
			}
			if !known {
				own = append(own, h)
				continue
			}
			v.note("A receipt is of the spool %s, which was brought into this ledger and is not on this machine: its head (event %d of %s) cannot be checked here.", id, h.Seq, h.Stream)
		}
	}
	return own, nil
}

// checkSpools checks the spools on this machine that heads are of, and crosses
// these heads off.
func (e *Engine) checkSpools(ctx context.Context, foreign map[string][]ledger.Head, v *Verified) error {
	if !ledger.Shared(e.ledgerURL()) {
		return nil
	}
	folders, err := filepath.Glob(e.spoolFolder() + "*")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			continue
		}
		err := func() (err error) {
			s, err := ledger.Open(ctx, ledger.DefaultURL(folder), ledger.Options{ReadOnly: true, Now: e.now})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			heads := foreign[s.ID()]
			if len(heads) == 0 {
				return nil
			}
			r, err := s.Verify(ctx, heads...)
			for _, p := range r.Problems {
				v.Findings = append(v.Findings, fmt.Sprintf("the spool %s: %s", folder, p))
			}
			delete(foreign, s.ID())
			return err
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// broughtIn tells from which spools a ledger has sandboxes, by stream.
type broughtIn struct {
	ctx    context.Context
	l      ledger.Ledger
	spools map[string]map[string]bool
}

func (b *broughtIn) from(stream, spool string) (bool, error) {
	if b.spools[stream] == nil {
		events, err := b.l.Events(b.ctx, stream, 1, 0)
		if err != nil {
			return false, err
		}
		seen := map[string]bool{}
		for _, ev := range events {
			if id, ok := spoolOf(ev.Operation); ok {
				seen[id] = true
			}
		}
		if b.spools == nil {
			b.spools = map[string]map[string]bool{}
		}
		b.spools[stream] = seen
	}
	return b.spools[stream][spool], nil
}
