package daytona

import (
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

const (
	// transfer is how long sending one file may take.
	transfer = 30 * time.Minute
	// maxAnswer bounds what a toolbox answers, in bytes: one look of execwire.
	maxAnswer = 9 << 20
)

// toolbox is the daemon inside one sandbox.
type toolbox struct {
	sandbox *sandbox
	client  *rest.Client
	home    string // of the sandbox's user
	upload  string // the call that takes one file
}

// enter reaches the daemon of a handle's sandbox, which runs.
func (b *backend) enter(ctx context.Context, h extensions.Handle) (*toolbox, error) {
	s, err := b.owned(ctx, h)
	if err != nil {
		return nil, err
	}
	switch b.observe(h.ID, s).Phase {
	case extensions.PhaseReady:
	case extensions.PhasePaused:
		return nil, extensions.Paused(h.ID)
	default:
		return nil, extensions.Errorf(extensions.KindUnavailable, "it does not run: %s says %s", vendor, s.state()).
			WithRemedy("wait until it has started; if it failed, create it anew")
	}
	t := &toolbox{sandbox: s, upload: "upload"}
	if b.cloud {
		t.upload = "upload-v2"
	}
	t.client, err = rest.Open(rest.Options{Vendor: vendor, Base: strings.TrimSuffix(s.ToolboxProxyUrl, "/") + "/" + s.Id, Bearer: b.token,
		Secrets: b.secrets, HTTP: b.inside, MaxBody: maxAnswer, Judge: judgeInside})
	if err != nil {
		return nil, err
	}
	if home, ok := b.homes.Load(s.Id); ok {
		t.home = home.(string)
		return t, nil
	}
	var out struct {
		Dir string `json:"dir"`
	}
	if _, err := t.client.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"user-home-dir"}, Out: &out,
		Is: func() bool { return path.IsAbs(out.Dir) }}); err != nil {
		return nil, err
	}
	t.home = path.Clean(out.Dir)
	b.homes.Store(s.Id, t.home)
	return t, nil
}

// base is where relative folders begin.
func (t *toolbox) base() string {
	if d := t.sandbox.Labels[labelWorkDir]; d != "" {
		return d
	}
	return t.home
}

// calls are what carries commands; most is the longest input of one in bytes, 0 = the usual.
func (t *toolbox) calls(most int64) execwire.Calls {
	return execwire.Calls{Put: t.put, Get: t.get, Run: t.run, MaxInput: most}
}

// put writes files one by one, each from a stream.
func (t *toolbox) put(ctx context.Context, files ...execwire.File) error {
	for _, f := range files {
		from, to := io.Pipe()
		form := multipart.NewWriter(to)
		written := make(chan struct{})
		go func() {
			defer close(written)
			part, err := form.CreateFormFile("file", path.Base(f.Path))
			if err == nil {
				_, err = io.Copy(part, f.Content)
			}
			if err == nil {
				err = form.Close()
			}
			_ = to.CloseWithError(err)
		}()
		_, err := t.client.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"files", t.upload}, Query: url.Values{"path": {f.Path}},
			Body: from, Type: form.FormDataContentType(), Timeout: transfer})
		_ = from.Close()
		if err != nil {
			return err // a source that blocks is its owner's concern; nobody waits for it
		}
		<-written
	}
	return nil
}

func (t *toolbox) get(ctx context.Context, at string, w io.Writer) error {
	var raw []byte
	if _, err := t.client.Do(ctx, rest.Call{Method: http.MethodGet, Path: []string{"files", "download"}, Query: url.Values{"path": {at}},
		Out: &raw}); err != nil {
		return err
	}
	_, err := w.Write(raw)
	return err
}

// run runs a short program. Its words have no letters that a shell would read, and the vendor's daemon splits them at spaces.
func (t *toolbox) run(ctx context.Context, _ string, argv ...string) (exit int, printed string, err error) {
	in := map[string]any{"command": strings.Join(argv, " "), "timeout": int(execwire.Look.Seconds())}
	var out struct {
		ExitCode int    `json:"exitCode"`
		Result   string `json:"result"`
	}
	_, err = t.client.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"process", "execute"}, In: in, Out: &out,
		Timeout: execwire.Look + 10*time.Second})
	return out.ExitCode, out.Result, err
}
