package sqlstore_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestAnExportedEventProvesItself(t *testing.T) {
	t.Parallel()
	l, _ := file(t)
	ran(t, l, "one")
	events, err := l.Events(ctx, "acme", 1, 0)
	if err != nil || len(events) < 4 {
		t.Fatal(events, err)
	}
	attribute := regexp.MustCompile(`^[a-z0-9]{1,20}$`)
	prev := ""
	for _, want := range events {
		got, id, err := chain.ParseEvent(want.CloudEvent)
		if err != nil {
			t.Fatal(err)
		}
		if id != l.ID() || got.ID != want.ID || got.PrevHash != prev || got.Seq != want.Seq || got.Stream != want.Stream ||
			got.Type != want.Type ||
			got.Subject != want.Subject || got.Operation != want.Operation || !got.Time.Equal(want.Time) ||
			string(got.CloudEvent) != string(want.CloudEvent) {
			t.Errorf("%+v\n%+v", got, want)
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(want.CloudEvent, &m); err != nil {
			t.Fatal(err)
		}
		for name, v := range m {
			if !attribute.MatchString(name) || name != "data" && (v[0] != '"' || string(v) == `""`) {
				t.Errorf("%s: %s is no attribute of a CloudEvent", name, v)
			}
		}
		prev = want.ID
	}
}

func TestAnAlteredEventIsNotRead(t *testing.T) {
	t.Parallel()
	l, _ := file(t)
	ran(t, l, "one")
	events, err := l.Events(ctx, "acme", 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	line := string(events[0].CloudEvent)
	cut := func(old, with string) string {
		if !strings.Contains(line, old) {
			t.Fatalf("%s is not in %s", old, line)
		}
		return strings.Replace(line, old, with, 1)
	}
	for name, altered := range map[string]string{
		"data":            cut(`"state":"provisioning"`, `"state":"ready"`),
		"subject":         cut(`"subject":"sbx-`, `"subject":"sby-`),
		"an extra field":  cut(`{`, `{"extra":"x",`),
		"the id":          cut(`"id":"`+events[0].ID, `"id":"`+events[0].PrevHash),
		"the hash":        cut(`"chainhash":"`+events[0].ID, `"chainhash":"`+events[0].PrevHash),
		"the one before":  cut(`"chainprev":"`+events[0].PrevHash, `"chainprev":"`+events[0].ID),
		"both hashes":     strings.ReplaceAll(line, events[0].ID, events[0].PrevHash),
		"the sequence":    cut(`"sequence":"00000000000000000002"`, `"sequence":"00000000000000000003"`),
		"no sequence":     cut(`"sequence":"00000000000000000002",`, ``),
		"another source":  cut(`urn:sandboxer:ledger:`, `urn:other:`),
		"not JSON":        line[:len(line)-1],
		"something after": line + "{}",
		"nothing":         "",
		"a number":        "7",
	} {
		if _, _, err := chain.ParseEvent([]byte(altered)); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Order and white space are not content.
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatal(err)
	}
	pretty, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := chain.ParseEvent(pretty); err != nil || string(got.CloudEvent) != line {
		t.Errorf("%s: %v", got.CloudEvent, err)
	}
}
