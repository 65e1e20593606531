package vercel

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/spool"
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

// absolute is a path inside: a relative one begins at the workspace, without one at the root.
func (i *inside) absolute(at string) string {
	if path.IsAbs(at) {
		return path.Clean(at)
	}
	return path.Join("/", i.dir, at)
}

// maxInput is how much input a command can have, or an upload, in bytes; the sandbox's disk has less as a rule.
const maxInput = 64 << 30

// transport starts processes: a sandbox has no stdin, and keeps the words and the output of every command in its record.
func (i *inside) transport(ctx context.Context, p execwire.Process) (int, error) {
	return execwire.Calls{Put: i.put, Get: i.get, Run: i.run, MaxInput: maxInput}.Transport(ctx, p)
}

func (i *inside) call(verb ...string) rest.Call { return i.b.into(i.w.Session.ID, verb...) }

// run is execwire.Calls.Run. The answer is a stream of lines, which is over soon.
func (i *inside) run(ctx context.Context, user string, argv ...string) (int, string, error) {
	if user != "" && user != ownUser && user != rootUser {
		return 0, "", extensions.Errorf(extensions.KindUnsupported, "the sandbox cannot run commands as %q", extensions.Clean(user, 80)).
			At("user").WithRemedy("leave the user out, or use %s or %s", ownUser, rootUser)
	}
	var out []byte
	call := i.call("cmd")
	call.In = map[string]any{"command": argv[0], "args": argv[1:], "cwd": home, "env": map[string]string{}, "sudo": user == rootUser,
		"wait": true, "logs": true}
	call.Out, call.Timeout = &out, 2*execwire.Look
	if _, err := i.b.api.Do(ctx, call); err != nil {
		return 0, "", err
	}
	return finished(out)
}

// line is one of a command's answer: the command, or what it printed.
type line struct {
	Command *struct {
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
			return 0, "", extensions.Errorf(extensions.KindIndeterminate, "%s does not tell how the command ended: %s", vendor,
				extensions.Clean(err.Error(), 100))
		case l.Stream == "error":
			return 0, "", extensions.Errorf(extensions.KindIndeterminate, "the sandbox ended while the command ran: %s",
				extensions.Clean(string(l.Data), 200))
		case l.Command != nil && l.Command.ExitCode != nil:
			return *l.Command.ExitCode, text.String(), nil
		case l.Stream == "stdout" && json.Unmarshal(l.Data, &words) == nil:
			text.WriteString(words)
		}
	}
}

// get is execwire.Calls.Get.
func (i *inside) get(ctx context.Context, at string, w io.Writer) error {
	var out []byte
	call := i.call("fs", "read")
	call.In, call.Out = map[string]string{"path": at}, &out
	a, err := i.b.api.Do(ctx, call)
	if a.Status == http.StatusNotFound && len(a.Body) == 0 { // as the vendor says it of files
		return extensions.Errorf(extensions.KindNotFound, "there is no %s in %s", extensions.Clean(at, 400), where)
	}
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// put is execwire.Calls.Put: one archive, unpacked at the root, packed as it is sent.
func (i *inside) put(ctx context.Context, files ...execwire.File) error {
	packed, to := io.Pipe()
	defer func() { _ = packed.Close() }()
	go func() { _ = to.CloseWithError(pack(to, files)) }()
	call := i.call("fs", "write")
	call.Body, call.Type, call.Header, call.Timeout = packed, "application/gzip", http.Header{"X-Cwd": {"/"}}, uploadTime
	_, err := i.b.api.Do(ctx, call)
	return err
}

func pack(w io.Writer, files []execwire.File) error {
	zip := gzip.NewWriter(w)
	to := tar.NewWriter(zip)
	for _, f := range files {
		if err := add(to, f); err != nil {
			return err
		}
	}
	return errors.Join(to.Close(), zip.Close())
}

// add puts a file into an archive, where its size comes first.
func add(to *tar.Writer, f execwire.File) error {
	var all spool.Spool
	defer func() { _ = all.Close() }()
	_, err := io.Copy(&all, f.Content)
	if err != nil {
		return err
	}
	r, err := all.Reader()
	if err == nil {
		err = to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.Path, "/"), Mode: 0o600, Size: all.Size})
	}
	if err == nil {
		_, err = io.Copy(to, r)
	}
	return err
}
