// Package docker runs sandboxes in containers of a Docker engine, through the engine's own API.
//
// # Where it runs
//
// On this machine's engine (its socket, that of rootless Docker, or a TLS address), and on that of a host over
// SSH. A sandbox is one container, or an agent with services on a network of their own.
//
// # Needs
//
// Docker Engine 20.10 or newer with Linux containers. The image of the agent needs /bin/sh, sleep and date.
//
// # Capabilities
//
// The level is container; more where the engine has such runtimes. Commands, files, logs, ports,
// pause, a movable deadline. Egress is all or nothing, and denied by default.
//
// # Expiry
//
// By the sandbox itself: the first process of each container is a small loop that reads the lease and ends at
// the deadline, and with it everything in the container.
//
// # Leaves behind
//
// Nothing after a teardown. An expired sandbox leaves its stopped containers until the next run settles it.
// Pulled images belong to the engine; built ones go with their last sandbox.
package docker

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Handler is the name that catalogs bind to.
const Handler = "docker"

// New returns the extension.
func New() extensions.Extension { return extension{} }

type extension struct{}

// Open implements extensions.Extension. It dials nothing.
func (extension) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("open", "", err)
	}
	s, err := parseConfig(cfg)
	if err != nil {
		return nil, failed("open", "", err)
	}
	e, err := connect(s, cfg)
	if err != nil {
		return nil, failed("open", "", err)
	}
	return &Backend{settings: s, engine: e, commitTime: commitTime}, nil
}

// Backend is one engine, as one account sees it.
type Backend struct {
	settings settings
	engine   *engine
	onStep   func(step string) // is told each step of a change; tests stop there

	commitTime time.Duration // tests wait less
}

// Close implements extensions.Backend. Sandboxes live on.
func (b *Backend) Close() error { return b.engine.close() }

func (b *Backend) step(name string) {
	if b.onStep != nil {
		b.onStep(name)
	}
}
