package tarstream

import (
	"encoding/json"
	"io/fs"
	"slices"
	"unicode/utf8"
)

// Entry describes one object of a stream.
type Entry struct {
	Path   string // slash-separated, relative, clean
	Type   Type
	Mode   fs.FileMode // permission bits only
	Size   int64       // bytes; files only
	SHA256 string      // lower-case hex; files only. Differs from the plain SHA-256 if the file has 4096 zeros in a row
	Link   string      // the unchanged target; symbolic links only
	Same   string      // the earlier entry that is the same file; "" = none
}

// Skipped is an object that Pack left out because a stream cannot hold its type: a socket, a FIFO, a device.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Manifest lists a stream's entries in ComparePaths order.
type Manifest struct {
	Entries []Entry   `json:"entries"`
	Skipped []Skipped `json:"skipped,omitempty"`
	Left    []LeftOut `json:"-"` // with Options.Partial: everything Pack could not carry
}

// LeftOut is an object that Pack could not carry, with everything below it.
type LeftOut struct {
	Path string // as in Entry
	Err  error
}

func (m *Manifest) sort() {
	slices.SortFunc(m.Entries, func(a, b Entry) int { return ComparePaths(a.Path, b.Path) })
}

// entryJSON keeps a manifest of many small files small. It carries names that are not UTF-8 as bytes, so that
// two of them never become one.
type entryJSON struct {
	Path    string      `json:"p,omitempty"`
	RawPath []byte      `json:"pb,omitempty"`
	Type    Type        `json:"t"`
	Mode    fs.FileMode `json:"m"`
	Size    int64       `json:"s,omitempty"`
	SHA256  string      `json:"h,omitempty"`
	Link    string      `json:"l,omitempty"`
	RawLink []byte      `json:"lb,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (e Entry) MarshalJSON() ([]byte, error) {
	j := entryJSON{Type: e.Type, Mode: e.Mode, Size: e.Size, SHA256: e.SHA256}
	j.Path, j.RawPath = textOrBytes(e.Path)
	j.Link, j.RawLink = textOrBytes(e.Link)
	return json.Marshal(j)
}

func textOrBytes(s string) (string, []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Entry) UnmarshalJSON(b []byte) error {
	var j entryJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*e = Entry{
		Path: j.Path + string(j.RawPath), Type: j.Type, Mode: j.Mode,
		Size: j.Size, SHA256: j.SHA256, Link: j.Link + string(j.RawLink),
	}
	return nil
}
