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
	"cmp"
	"context"

	"golang.org/x/time/rate"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/indoors"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/oidc"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/pace"
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
	b, err := x.at(cfg)
	if err = cmp.Or(ctx.Err(), err); err == nil {
		err = b.dial(cfg.Credentials[credentialSecret])
	}
	return extensions.Opened(b, err)
}

// at is a backend that is connected to nothing.
func (x extension) at(cfg extensions.Config) (*backend, error) {
	s, err := parseConfig(cfg)
	if err != nil {
		return nil, err
	}
	b := &backend{settings: s, creates: pace.Of(cfg.Values, defaultPerMinute)}
	b.Place = byname.Place[*gateway.Sandbox]{Vendor: vendor, Look: b.look, List: b.list, Tell: b.tell, Make: b.prepare,
		Refused: b.refused, End: b.end, Gone: gone,
		Handle: func(id extensions.ID, ref string) extensions.Handle { return handle(id, s.workspace, ref) }}
	b.Door = indoors.Door{Vendor: vendor, Enter: b.enter}
	b.desc, err = extensions.Declared(x, cfg.Values)
	return b, err
}

// Identity implements extensions.Identifier: whoever may call the gateway sees what its workspace has.
func (extension) Identity(cfg extensions.Config) string {
	s, err := parseConfig(cfg)
	if err != nil {
		return ""
	}
	return s.address + " " + s.workspace
}

// backend is one account, a part of a workspace of a gateway.
type backend struct {
	settings
	byname.Place[*gateway.Sandbox] // makes, finds, watches and ends sandboxes
	indoors.Door                   // commands, files, and what a sandbox is filled with

	desc    extensions.Descriptor
	line    grpcline.Line
	oidc    *oidc.Client // nil = a certificate says who calls, or nothing does
	gateway gateway.OpenShellClient
	creates *rate.Limiter // the binding's creates per minute
}

// Close implements extensions.Backend.
func (b *backend) Close() error {
	b.line.Close()
	if b.oidc != nil {
		b.oidc.Close()
	}
	return nil
}
