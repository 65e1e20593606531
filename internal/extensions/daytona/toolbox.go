package daytona

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/indoors"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

const (
	// transfer is how long sending one file may take.
	transfer  = 30 * time.Minute
	maxAnswer = 9 << 20 // bytes that a toolbox answers at most: one look of execwire
	// maxArchive is the longest archive that is sent, in bytes: it lies beside what is unpacked from it for a while.
	maxArchive = 64 << 30
)

// toolbox is the daemon inside one sandbox.
type toolbox struct {
	sandbox *sandbox
	client  *rest.Client
	home    string // of the sandbox's user
	upload  string // the call that takes one file
}

// enter reaches the inside of a handle's sandbox, which runs.
func (b *backend) enter(ctx context.Context, h extensions.Handle) (*indoors.Room, error) {
	t, err := b.toolbox(ctx, h)
	if err != nil {
		return nil, err
	}
	calls := execwire.Calls{Put: t.put, Get: t.get, Run: t.run}
	archives := calls
	archives.MaxInput = maxArchive
	dir := t.sandbox.Labels[labelWorkDir]
	return &indoors.Room{Ref: t.sandbox.Id, WorkDir: dir, Begin: cmp.Or(dir, t.home), User: t.sandbox.User, Run: calls.Transport,
		Archives: archives.Transport, Whole: true, Read: t.read}, nil
}

func (b *backend) toolbox(ctx context.Context, h extensions.Handle) (*toolbox, error) {
	s, told, err := b.Owned(ctx, h)
	if err != nil {
		return nil, err
	}
	switch told.Phase {
	case extensions.PhaseReady:
	case extensions.PhasePaused:
		return nil, extensions.Paused(h.ID)
	default:
		return nil, extensions.Errorf(extensions.KindUnavailable, "it does not run: %s says %s", vendor, told.State).
			WithRemedy("wait until it has started; if it failed, re-create it")
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
	type home struct {
		Dir string `json:"dir"`
	}
	at, _, err := rest.Ask(ctx, t.client, rest.Call{Method: http.MethodGet, Path: []string{"user-home-dir"}},
		func(h *home) bool { return path.IsAbs(h.Dir) })
	if err == nil {
		t.home = path.Clean(at.Dir)
		b.homes.Store(s.Id, t.home)
	}
	return t, err
}

// put writes files one by one, each from a stream.
func (t *toolbox) put(ctx context.Context, files ...execwire.File) error {
	for _, f := range files {
		body, kind, written := rest.Upload("file", path.Base(f.Path), f.Content)
		_, err := t.client.Do(ctx, rest.Call{Method: http.MethodPost, Path: []string{"files", t.upload}, Query: url.Values{"path": {f.Path}},
			Body: body, Type: kind, Timeout: transfer})
		_ = body.Close()
		if err != nil {
			return err
		}
		<-written
	}
	return nil
}

func (t *toolbox) get(ctx context.Context, at string, w io.Writer) error {
	raw, err := t.read(ctx, at)
	if err == nil {
		_, err = w.Write(raw)
	}
	return err
}

func (t *toolbox) read(ctx context.Context, at string) ([]byte, error) {
	if !path.IsAbs(at) {
		at = path.Join(t.home, at)
	}
	raw, _, err := rest.Ask[[]byte](ctx, t.client, rest.Call{Method: http.MethodGet, Path: []string{"files", "download"},
		Query: url.Values{"path": {at}}}, nil)
	return *raw, err
}

// run runs a short program. Its words have no letters that a shell would read, and the vendor's daemon splits them at spaces.
func (t *toolbox) run(ctx context.Context, _ string, argv ...string) (exit int, printed string, err error) {
	type ended struct {
		ExitCode int    `json:"exitCode"`
		Result   string `json:"result"`
	}
	in := map[string]any{"command": strings.Join(argv, " "), "timeout": int(execwire.Look.Seconds())}
	out, _, err := rest.Ask[ended](ctx, t.client, rest.Call{Method: http.MethodPost, Path: []string{"process", "execute"}, In: in,
		Timeout: execwire.Look + 10*time.Second}, nil)
	return out.ExitCode, out.Result, err
}

// desktop starts the desktop of a sandbox that requires one, unless it runs.
func (b *backend) desktop(ctx context.Context, h extensions.Handle) error {
	t, err := b.toolbox(ctx, h)
	if err != nil || t.sandbox.Labels[labelDesktop] == "" {
		return err
	}
	type desktop struct {
		Status map[string]struct {
			Running bool `json:"running"`
		} `json:"status"`
	}
	out, a, err := rest.Ask(ctx, t.client, rest.Call{Method: http.MethodPost, Path: []string{"computeruse", "start"}},
		func(d *desktop) bool { return len(d.Status) > 0 })
	lacks := err != nil && a.Own && a.Status != http.StatusTooManyRequests
	for _, process := range out.Status {
		lacks = lacks || !process.Running
	}
	if lacks {
		return extensions.Errorf(extensions.KindUnsupported, "the desktop does not run in this image").At("requires.capabilities").
			WithRemedy("use a snapshot with Xvfb, xfce4, x11vnc and novnc, such as the vendor's own, or do not require a desktop")
	}
	return err
}
