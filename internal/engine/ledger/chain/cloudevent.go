package chain

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// sourcePrefix, followed by the ledger's id, is the source of its events.
const sourcePrefix = "urn:sandboxer:ledger:"

// Attributes added to an event on its way out. The hash covers all others and is the id, so the same event
// has the same id wherever it arrives.
const (
	attrID   = "id"
	attrHash = "chainhash" // of this event: with sequence and stream, the chain's head when it was written
	attrPrev = "chainprev" // of the event before; absent for the first
)

// Shown returns the recorded event as others see it.
func (e Event) Shown() (json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(e.CloudEvent, &m); err != nil {
		return nil, fault.Errorf(extensions.KindInternal, "event %s/%d is not JSON: %w", e.Stream, e.Seq, err)
	}
	m[attrID] = quoted(e.ID)
	m[attrHash] = quoted(e.ID)
	if e.PrevHash != "" {
		m[attrPrev] = quoted(e.PrevHash)
	}
	return Encode(m)
}

func quoted(hash string) json.RawMessage { return json.RawMessage(`"` + hash + `"`) }

// ParseEvent reads what Event.CloudEvent holds, such as one line of an exported copy, and returns it with
// the id of its ledger. KindInvalid if it is no event of a ledger or its hash does not match its content.
// The caller checks that events follow one another: each Seq is one more, and PrevHash the previous ID.
func ParseEvent(line []byte) (e Event, ledger string, err error) {
	bad := func(format string, args ...any) (Event, string, error) {
		return Event{}, "", fault.Errorf(extensions.KindInvalid, "this is not a ledger event: "+format, args...)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(line, &m); err != nil {
		return bad("%w", err)
	}
	var a struct {
		ID, Source, Type, Subject, Stream, Sequence, Operation, ChainHash, ChainPrev string
		Time                                                                         time.Time
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return bad("%w", err)
	}
	for _, added := range []string{attrID, attrHash, attrPrev} {
		delete(m, added)
	}
	body, err := Encode(m)
	if err == nil {
		body, err = Canonical(body)
	}
	if err != nil {
		return bad("%w", err)
	}
	id, ok := strings.CutPrefix(a.Source, sourcePrefix)
	seq, err := strconv.ParseInt(a.Sequence, 10, 64)
	if !ok || err != nil || seq <= 0 || a.Stream == "" || a.Type == "" {
		return bad("its source, stream, sequence or type is invalid")
	}
	if a.ID != a.ChainHash || Hash(a.ChainPrev, body) != a.ID {
		return bad("event %s/%d was altered: its hash does not match its content", extensions.Clean(a.Stream, 80), seq)
	}
	e = Event{Stream: a.Stream, Seq: seq, ID: a.ID, PrevHash: a.ChainPrev, Type: a.Type, Subject: a.Subject, Operation: a.Operation,
		Time: a.Time}
	e.CloudEvent = body
	e.CloudEvent, err = e.Shown()
	return e, id, err
}
