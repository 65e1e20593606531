package composessh

import (
	"encoding/json"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// said is what a script reports beside its streams; the operation decides which fields count.
type said struct {
	Failure *failure `json:"failure"`

	Exit    *int   `json:"exit"`
	Timeout bool   `json:"timeout"`
	State   string `json:"state"` // of the container after the command
	Service string `json:"service"`

	Method    string   `json:"method"` // how files go in and out: tar | copy
	UID       int      `json:"uid"`
	GID       int      `json:"gid"`
	Path      string   `json:"path"`
	Folder    bool     `json:"folder"`
	Direct    []string `json:"direct"`    // addresses the host can connect to
	Connected string   `json:"connected"` // the tool that connected
	Refused   string   `json:"refused"`   // why the service refused the connection
	Words     string   `json:"words"`     // an archiver's complaints
	EOF       *int64   `json:"eof"`       // the service sends at most this many bytes
}

// channel hears a script's reports in a stream and passes the rest of it on to out; nil = drops it.
func channel(nonce string, out io.Writer, heard func(said)) *execwire.Frames {
	return execwire.NewFrames(nonce, out, func(report []byte) {
		var s said
		if json.Unmarshal(report, &s) == nil {
			heard(s)
		}
	})
}
