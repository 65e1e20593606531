package ledger

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// sourcePrefix and the ledger's id are the source of its events.
const sourcePrefix = "urn:sandboxer:ledger:"

// Attributes that an event gets on its way out. The hash is that of all the
// others, and is the id: the same event has the same id wherever it arrives.
const (
	attrID   = "id"
	attrHash = "chainhash" // of this event: with sequence and stream, the chain's head when it was written
	attrPrev = "chainprev" // of the event before; absent for the first
)

// shown is the recorded event as others see it.
func (e Event) shown() (json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(e.CloudEvent, &m); err != nil {
		return nil, failuref(extensions.KindInternal, "event %s/%d is not JSON: %w", e.Stream, e.Seq, err)
	}
	m[attrID] = quoted(e.ID)
	m[attrHash] = quoted(e.ID)
	if e.PrevHash != "" {
		m[attrPrev] = quoted(e.PrevHash)
	}
	return encode(m)
}

func quoted(hash string) json.RawMessage { return json.RawMessage(`"` + hash + `"`) }

// ParseEvent reads what Event.CloudEvent holds, such as one line of an
// exported copy, and returns it with the id of its ledger. It is KindInvalid
// unless it is an event of a ledger and its hash is that of its content. That
// the events of a copy follow one another is the caller's to compare: Seq is
// one more, and PrevHash the ID of the one before.
func ParseEvent(line []byte) (e Event, ledger string, err error) {
	bad := func(format string, args ...any) (Event, string, error) {
		return Event{}, "", failuref(extensions.KindInvalid, "this is no event of a ledger: "+format, args...)
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
	body, err := encode(m)
	if err == nil {
		body, err = canonical(body)
	}
	if err != nil {
		return bad("%w", err)
	}
	id, ok := strings.CutPrefix(a.Source, sourcePrefix)
	seq, err := strconv.ParseInt(a.Sequence, 10, 64)
	if !ok || err != nil || seq <= 0 || a.Stream == "" || a.Type == "" {
		return bad("source, stream, sequence or type are not one's")
	}
	if a.ID != a.ChainHash || chainHash(a.ChainPrev, body) != a.ID {
		return bad("event %s/%d was altered: its hash is not that of its content", extensions.Clean(a.Stream, 80), seq)
	}
	e = Event{Stream: a.Stream, Seq: seq, ID: a.ID, PrevHash: a.ChainPrev, Type: a.Type, Subject: a.Subject, Operation: a.Operation, Time: a.Time}
	e.CloudEvent = body
	e.CloudEvent, err = e.shown()
	return e, id, err
}
