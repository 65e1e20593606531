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
	"net/url"
	"os"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
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
	b    *backend
	w    *whole
	bare bool // it has no workspace
}

// enter reaches the sandbox of a handle.
func (b *backend) enter(ctx context.Context, h extensions.Handle) (*inside, error) {
	w, err := b.runs(ctx, h)
	if err != nil {
		return nil, err
	}
	has, _ := b.ours(w.Sandbox)
	return &inside{b, w, has[labelBare] != ""}, nil
}

// The folders of a sandbox. home is the one that the vendor gives to its user.
const (
	home    = "/vercel/sandbox"
	workDir = home + "/workspace"
)

// dir is the workspace; "" = none.
func (i *inside) dir() string {
	if i.bare {
		return ""
	}
	return workDir
}

// calls are what a sandbox offers: it has no stdin, and keeps the words and the output of every command in its record.
func (i *inside) calls() execwire.Calls {
	return execwire.Calls{Put: i.put, Get: i.get, Run: i.run, MaxInput: maxInput}
}

// maxInput is how much input a command can have, or an upload, in bytes; the sandbox's disk has less as a rule.
const maxInput = 64 << 30

func (i *inside) transport(ctx context.Context, p execwire.Process) (int, error) {
	return i.calls().Transport(ctx, p)
}

// path is that of a call into the session.
func (i *inside) path(verb ...string) []string {
	return append([]string{"v2", "sandboxes", "sessions", i.w.Session.ID}, verb...)
}

func (i *inside) query() url.Values { return url.Values{"teamId": {i.b.team}} }

// run is execwire.Calls.Run. The answer is a stream of lines, which is over soon.
func (i *inside) run(ctx context.Context, user string, argv ...string) (int, string, error) {
	if user != "" && user != ownUser && user != rootUser {
		return 0, "", extensions.Errorf(extensions.KindUnsupported, "the sandbox cannot run commands as %q", extensions.Clean(user, 80)).
			At("user").WithRemedy("leave the user out, or use %s or %s", ownUser, rootUser)
	}
	in := map[string]any{"command": argv[0], "args": argv[1:], "cwd": home, "env": map[string]string{}, "sudo": user == rootUser,
		"wait": true, "logs": true}
	var out []byte
	_, err := i.b.api.Do(ctx, rest.Call{Method: http.MethodPost, Path: i.path("cmd"), Query: i.query(), In: in, Out: &out,
		Timeout: 2 * execwire.Look})
	if err != nil {
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
	a, err := i.b.api.Do(ctx, rest.Call{Method: http.MethodPost, Path: i.path("fs", "read"), Query: i.query(),
		In: map[string]string{"path": at}, Out: &out})
	if a.Status == http.StatusNotFound && len(a.Body) == 0 { // as the vendor says it of files
		return extensions.Errorf(extensions.KindNotFound, "there is no %s in %s", extensions.Clean(at, 400), where)
	}
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// maxPart is how much of a file is in memory at once while its size is not known, in bytes.
const maxPart = 1 << 20

// put is execwire.Calls.Put: one archive, unpacked at the root, packed as it is sent.
func (i *inside) put(ctx context.Context, files ...execwire.File) error {
	packed, to := io.Pipe()
	defer func() { _ = packed.Close() }()
	go func() { _ = to.CloseWithError(pack(to, files)) }()
	_, err := i.b.api.Do(ctx, rest.Call{Method: http.MethodPost, Path: i.path("fs", "write"), Query: i.query(), Body: packed,
		Type: "application/gzip", Header: http.Header{"X-Cwd": {"/"}}, Timeout: uploadTime})
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

// add puts a file into an archive. Its size comes first there, so one that is not short waits on this machine's disk.
func add(to *tar.Writer, f execwire.File) error {
	head := tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.Path, "/"), Mode: 0o600}
	var short bytes.Buffer
	n, err := io.CopyN(&short, f.Content, maxPart)
	if errors.Is(err, io.EOF) {
		head.Size = n
		return errors.Join(to.WriteHeader(&head), copied(to, &short))
	}
	if err != nil {
		return err
	}
	long, err := os.CreateTemp("", "sandboxer-input-*")
	if err != nil {
		return err
	}
	defer func() { _ = long.Close(); _ = os.Remove(long.Name()) }()
	if head.Size, err = io.Copy(long, io.MultiReader(&short, f.Content)); err != nil {
		return err
	}
	if _, err := long.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return errors.Join(to.WriteHeader(&head), copied(to, long))
}

func copied(to io.Writer, from io.Reader) error {
	_, err := io.Copy(to, from)
	return err
}
