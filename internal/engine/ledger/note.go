package ledger

import "encoding/json"

// Note is what a caller adds to the event of its change.
type Note struct {
	Type string          // "" = derived from the change
	Data json.RawMessage // a JSON object without secrets; nil = none
}

// NewNote makes a note of strings, numbers and times.
func NewNote(kind string, data map[string]any) Note {
	b, err := json.Marshal(data)
	if err != nil {
		b = nil
	}
	return Note{Type: kind, Data: b}
}

// Typed returns the note's type, or otherwise if it has none.
func (n Note) Typed(otherwise string) string {
	if n.Type != "" {
		return n.Type
	}
	return otherwise
}
