// Package e2b runs sandboxes at E2B (e2b.dev), or at a server that speaks its API: microVMs made from templates,
// rented by the second.
//
// # Where it runs
//
// At the vendor, in the team of the API key. The control plane (spec/openapi.yml) makes, lists and ends
// sandboxes; envd, a daemon inside each (spec/process.proto, spec/envd.yaml), runs commands and moves files.
//
// # Needs
//
// An API key. Templates are Debian: commands are started by setsid and /bin/sh, files move by tar.
//
// # Expiry
//
// Native, by the second. A paused sandbox has no deadline of the vendor's: the next run ends it.
//
// # Leaves behind
//
// Snapshots that were kept. They hold memory, and so the secrets of their sandbox. Templates of images that a profile
// keeps.
package e2b

import (
	"cmp"
	"context"
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/indoors"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shelf"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

//go:generate go -C spec run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi.yaml openapi.yml
//go:generate go -C spec run github.com/bufbuild/buf/cmd/buf@v1.75.0 generate

// Handler is the name that bindings of this extension use.
const Handler = "e2b"

type extension struct{}

// New returns the extension.
func New() extensions.Extension { return extension{} }

// Open implements extensions.Extension. It contacts nobody.
func (x extension) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	b, err := open(x, cfg)
	return extensions.Opened(b, cmp.Or(ctx.Err(), err))
}

func open(x extension, cfg extensions.Config) (*backend, error) {
	s, err := parseConfig(cfg)
	if err != nil {
		return nil, err
	}
	b := &backend{settings: s, forking: make(chan struct{}, 1)}
	if b.desc, err = extensions.Declared(x, cfg.Values); err != nil {
		return nil, err
	}
	b.Door = indoors.Door{Vendor: vendor, Enter: b.room}
	b.Shelf = shelf.Shelf{Vendor: vendor, Handler: Handler, Version: handleVersion, Ref: snapshotRef, Declared: b.desc.Snapshots,
		Each: b.named, Take: b.take, Drop: b.drop}
	key := cfg.Credentials[credentialKey]
	if key.IsZero() {
		return nil, extensions.Errorf(extensions.KindUnauthorized, "there is no API key for E2B").
			WithRemedy("set the credential api_key of this extension, or E2B_API_KEY")
	}
	b.control, err = rest.Open(rest.Options{Vendor: vendor, Base: s.apiURL, Judge: judge,
		Secrets: map[string]extensions.Secret{"X-API-Key": key}})
	if err != nil {
		return nil, err
	}
	if b.inside, err = webcall.Client(nil); err != nil {
		return nil, err
	}
	b.creates = rate.NewLimiter(rate.Limit(s.plan.creates), 1)
	return b, nil
}

// backend is one account, a part of a team at the vendor.
type backend struct {
	settings
	indoors.Door // commands, files, and what a sandbox is filled with
	shelf.Shelf  // snapshots

	desc    extensions.Descriptor
	control *rest.Client
	inside  *http.Client  // speaks to envd
	creates *rate.Limiter // the plan's creates per second, kept by waiting
	forking chan struct{} // capacity 1: whoever fills it takes the snapshot of a fork
	making  sync.Map      // template's name -> chan struct{}, full while this process makes it
}

// Close implements extensions.Backend.
func (b *backend) Close() error {
	b.control.Close()
	b.inside.CloseIdleConnections()
	return nil
}
