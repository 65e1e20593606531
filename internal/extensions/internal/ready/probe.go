package ready

import (
	"context"
	"embed"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

//go:embed sh/*.sh
var shellFiles embed.FS

// Scripts are the programs of this package.
var Scripts = &shtext.Files{FS: shellFiles}

// once is how long one try of a probe may take.
const once = 30 * time.Second

// Check returns KindInvalid for a probe that cannot be asked: schemes are those of URLs that the place asks.
func Check(p *extensions.Probe, schemes ...string) error {
	if p == nil {
		return nil
	}
	if p.HTTP != "" {
		if u, err := url.Parse(p.HTTP); err != nil || !slices.Contains(schemes, u.Scheme) || u.Host == "" {
			return extensions.Errorf(extensions.KindInvalid, "readiness.http: %q is not an %s:// URL", extensions.Clean(p.HTTP, 200), schemes[0])
		}
	}
	if p.TCP != "" {
		if _, _, err := net.SplitHostPort(p.TCP); err != nil {
			return extensions.Errorf(extensions.KindInvalid, "readiness.tcp: %q is not host:port", extensions.Clean(p.TCP, 200))
		}
	}
	return nil
}

// Answered waits until p answers, asked by commands inside.
func Answered(ctx context.Context, p *extensions.Probe,
	exec func(context.Context, extensions.ExecRequest) (extensions.ExecResult, error)) error {
	return Of(p).Until(ctx, func(ctx context.Context) (string, error) { return Probe(ctx, p, exec) })
}

// Probe asks p once by commands inside and returns why it does not answer, "" = it does or there is none. An
// error is one that no later try mends.
func Probe(ctx context.Context, p *extensions.Probe,
	exec func(context.Context, extensions.ExecRequest) (extensions.ExecResult, error)) (string, error) {
	if p == nil {
		return "", nil
	}
	req := extensions.ExecRequest{Command: p.Command, Service: p.Service, Timeout: once}
	if p.HTTP != "" || p.TCP != "" {
		host, port, _ := net.SplitHostPort(p.TCP)
		req.Command = []string{"/bin/sh", "-c", shtext.Join([]*shtext.Files{Scripts}, "probe"), "sh", p.HTTP, host, port}
	}
	r, err := exec(ctx, req)
	switch kind := extensions.KindOf(err); {
	case err == nil && r.ExitCode == 0:
		return "", nil
	case err == nil:
		why := fmt.Sprintf("the probe's exit code is %d", r.ExitCode)
		if said := extensions.LastLines(string(r.Stderr), 200); said != "" {
			why += ": " + said
		}
		return why, nil
	case kind == extensions.KindInvalid, kind == extensions.KindUnsupported, kind == extensions.KindNotFound,
		kind == extensions.KindUnauthorized:
		return "", err
	}
	return extensions.Clean(err.Error(), 400), nil
}
