package e2b

import (
	"context"
	"encoding/base64"
	"net/http"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/filesystem"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/process"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/indoors"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
)

const (
	envdPort = "49983"
	// maxMessage bounds one message of a stream, in bytes.
	maxMessage = 4 << 20
	// keepalive is how often the vendor's proxies see a sign of life on a quiet stream, in seconds.
	keepalive = "50"
)

// envd is the daemon inside one sandbox.
type envd struct {
	detail    *api.SandboxDetail
	files     *rest.Client
	processes process.ProcessClient
	tree      filesystem.FilesystemClient
	header    http.Header
}

// enter reaches the daemon of a handle's sandbox. A paused sandbox stays so.
func (b *backend) enter(ctx context.Context, h extensions.Handle) (*envd, error) {
	d, err := b.owned(ctx, h)
	if err != nil {
		return nil, err
	}
	if d.State == api.Paused {
		return nil, extensions.Paused(h.ID)
	}
	base, err := b.envdURL(d.SandboxID, d.Domain)
	if err != nil {
		return nil, err
	}
	e := &envd{detail: d, header: http.Header{"E2b-Sandbox-Id": {d.SandboxID}, "E2b-Sandbox-Port": {envdPort},
		"Keepalive-Ping-Interval": {keepalive}}}
	secrets := map[string]extensions.Secret{}
	if t := rest.Value(d.EnvdAccessToken); t != "" {
		secrets["X-Access-Token"] = extensions.NewSecret(t)
	}
	e.files, err = rest.Open(rest.Options{Vendor: vendor, Base: base, Secrets: secrets, Header: e.header, HTTP: b.inside, Judge: judgeInside})
	if err != nil {
		return nil, err
	}
	e.processes = process.NewProcessClient(b.inside, base, e.options(secrets)...)
	e.tree = filesystem.NewFilesystemClient(b.inside, base, e.options(secrets)...)
	return e, nil
}

// room is what a sandbox's daemon lets be done inside.
func (b *backend) room(ctx context.Context, h extensions.Handle) (*indoors.Room, error) {
	e, err := b.enter(ctx, h)
	if err != nil {
		return nil, err
	}
	return &indoors.Room{Ref: e.detail.SandboxID, WorkDir: workDir(e.detail.Metadata), Run: e.run, Inside: e}, nil
}

// as is the header that names a user of the sandbox, who needs no password.
func as(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"))
}
