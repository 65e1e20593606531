// Package openshell runs sandboxes behind a gateway of NVIDIA OpenShell: containers or virtual machines of the user's own
// machines, under a policy of files, processes and network that the gateway enforces.
//
// # Where it runs
//
// In one workspace of one gateway, which makes sandboxes by its own driver: Docker, Podman, Kubernetes or virtual machines. The
// gateway's API (spec/openshell.proto) makes, finds and ends them, runs commands and forwards ports.
//
// # Needs
//
// A gateway of version 0.0.111 or newer, and a client certificate or an OIDC client for it. Images with /bin/sh and tar.
//
// # Expiry
//
// None of the gateway's: the next run of sandboxer ends a sandbox.
//
// # Leaves behind
//
// Nothing; the gateway's driver keeps the images that it pulled.
package openshell

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

//go:generate go -C spec run github.com/bufbuild/buf/cmd/buf@v1.75.0 generate

// Handler is the name that bindings of this extension use.
const Handler = "openshell"

type extension struct{}

// New returns the extension.
func New() extensions.Extension { return extension{} }

// Open implements extensions.Extension. It reads certificates and contacts nobody.
func (x extension) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("open", "", err)
	}
	b, err := open(x, cfg)
	if err != nil {
		return nil, failed("open", "", err)
	}
	return b, nil
}

func open(x extension, cfg extensions.Config) (*backend, error) {
	s, err := parseConfig(cfg)
	if err != nil {
		return nil, err
	}
	b := &backend{settings: s, creates: rate.NewLimiter(rate.Every(time.Minute/time.Duration(s.perMinute)), int(s.perMinute))}
	if b.desc, err = extensions.Declared(x, cfg.Values); err != nil {
		return nil, err
	}
	if b.line, err = newLine(s, cfg.Credentials[credentialSecret]); err != nil {
		return nil, err
	}
	b.gateway = gateway.NewOpenShellClient(b.line.conn)
	return b, nil
}

// backend is one account, a part of a workspace of a gateway.
type backend struct {
	settings
	desc    extensions.Descriptor
	line    *line
	gateway gateway.OpenShellClient
	creates *rate.Limiter // the binding's creates per minute, kept by waiting
	filled  sync.Map      // the gateway's id of a sandbox -> content; what was read of it once
}

// Close implements extensions.Backend.
func (b *backend) Close() error {
	b.line.close()
	return nil
}
