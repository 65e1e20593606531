package vercel

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/contents"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/tarbox"
)

// The users of a sandbox: its own, and root by sudo.
const (
	ownUser  = "vercel-sandbox"
	rootUser = "root"
)

// where names a sandbox in messages.
const where = "the sandbox"

// inside is a running sandbox.
type inside struct {
	b   *backend
	w   *whole
	dir string // the workspace; "" = none
}

// enter reaches the sandbox of a handle.
func (b *backend) enter(ctx context.Context, h extensions.Handle) (*inside, error) {
	w, err := b.runs(ctx, h)
	if err != nil {
		return nil, err
	}
	return &inside{b, w, b.dir(w.Sandbox)}, nil
}

// The folders of a sandbox. home is the one that the vendor gives to its user.
const (
	home    = "/vercel/sandbox"
	workDir = home + "/workspace"
)

// dir is a sandbox's workspace; "" = none.
func (b *backend) dir(s sandbox) string {
	if has, _ := b.ours(s); has[labelBare] != "" {
		return ""
	}
	return workDir
}

const (
	// maxInput is how much input a command can have, or an upload, in bytes; the sandbox's disk has less as a rule.
	maxInput = 64 << 30
	// uploadTime bounds one call that brings files.
	uploadTime = 30 * time.Minute
)

// calls reach inside: a sandbox has no stdin, and keeps the words and the output of every command in its record.
func (i *inside) calls() contents.Calls {
	return contents.Calls{Calls: execwire.Calls{Put: i.put, Get: i.get, Run: i.run, MaxInput: maxInput}, Home: home, Where: where}
}

// run is execwire.Calls.Run. The answer is a stream of lines, which is over soon.
func (i *inside) run(ctx context.Context, user string, argv ...string) (int, string, error) {
	if user != "" && user != ownUser && user != rootUser {
		return 0, "", extensions.Errorf(extensions.KindUnsupported, "the sandbox cannot run commands as %q", extensions.Clean(user, 80)).
			At("user").WithRemedy("leave the user out, or use %s or %s", ownUser, rootUser)
	}
	var out []byte
	call := i.b.into(i.w.Session.ID, map[string]any{"command": argv[0], "args": argv[1:], "cwd": home, "env": map[string]string{},
		"sudo": user == rootUser, "wait": true, "logs": true}, "cmd")
	call.Out, call.Timeout = &out, 2*execwire.Look
	if _, err := i.b.api.Do(ctx, call); err != nil {
		return 0, "", err
	}
	return finished(out)
}

// line is one of a command's answer: the command, or what it printed.
type line struct {
	Command struct {
		ExitCode *int `json:"exitCode"`
	} `json:"command"`
	Stream string          `json:"stream"`
	Data   json.RawMessage `json:"data"`
}

// finished reads the answer of a command: its exit code and what it printed.
func finished(out []byte) (exit int, printed string, err error) {
	var text strings.Builder
	from := json.NewDecoder(bytes.NewReader(out))
	for {
		var l line
		var words string
		switch err := from.Decode(&l); {
		case err != nil: // the end of the stream, which comes before the command's if something broke
			return 0, "", extensions.Errorf(extensions.KindIndeterminate, "%s does not say how the command ended: %s", vendor,
				extensions.Clean(err.Error(), 100))
		case l.Stream == "error":
			return 0, "", extensions.Errorf(extensions.KindIndeterminate, "the sandbox ended while the command ran: %s",
				extensions.Clean(string(l.Data), 200))
		case l.Command.ExitCode != nil:
			return *l.Command.ExitCode, text.String(), nil
		case l.Stream == "stdout" && json.Unmarshal(l.Data, &words) == nil:
			text.WriteString(words)
		}
	}
}

// get is execwire.Calls.Get.
func (i *inside) get(ctx context.Context, at string, w io.Writer) error {
	var out []byte
	call := i.b.into(i.w.Session.ID, map[string]string{"path": at}, "fs", "read")
	call.Out = &out
	a, err := i.b.api.Do(ctx, call)
	if a.Status == http.StatusNotFound && len(a.Body) == 0 { // as the vendor says it of files
		return extensions.Errorf(extensions.KindNotFound, "there is no %s in %s", extensions.Clean(at, 400), where)
	}
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// put is execwire.Calls.Put.
func (i *inside) put(ctx context.Context, files ...execwire.File) error {
	packed := tarbox.Packed(files...)
	defer func() { _ = packed.Close() }()
	call := i.b.into(i.w.Session.ID, nil, "fs", "write")
	call.Body, call.Type, call.Header, call.Timeout = packed, "application/gzip", http.Header{"X-Cwd": {"/"}}, uploadTime
	_, err := i.b.api.Do(ctx, call)
	return err
}
