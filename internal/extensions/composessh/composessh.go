// Package composessh runs sandboxes over SSH as Docker Compose stacks on machines that their user owns, with
// nothing installed there.
//
// # Where it runs
//
// On a host with sshd and Docker. Each sandbox is one Compose project named after the sandbox's id, with its
// own networks, labels and limits, and a folder below ~/.sandboxer of the login.
//
// # Needs
//
// Linux, an SSH login that may use docker (root, the docker group or a rootless daemon), Docker Engine 20.10
// or newer, Compose 2.0 or newer, and the ordinary tools of coreutils or busybox, tar and util-linux (flock,
// setsid).
//
// # Capabilities
//
// The level is container. Commands in every service, files, logs, ports, a movable deadline. Egress is denied
// by default, proved once per engine; allowlists work if the owner of the host allows what they need. Snapshots of
// the workspace and volumes, or with the containers' file systems, which restore on other hosts too; forks.
//
// # Expiry
//
// By the host: a small shell loop, under systemd if allowed, reads the leases at least every five seconds and
// ends what is overdue.
//
// # Leaves behind
//
// Nothing after a teardown but snapshots; the folder goes with the last sandbox. Pulled images belong to the host. An
// expired sandbox leaves a record of a few hundred bytes until it is torn down.
package composessh

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// Handler is the name that catalogs bind to.
const Handler = "compose-ssh"

// New returns the extension. It remembers the stacks that it accepted.
func New() extensions.Extension { return extension{&checks{}} }

type extension struct{ checks *checks }

// Open implements extensions.Extension. It dials nothing; Provision or Probe finds what the host lacks.
func (extension) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("open", "", err)
	}
	s, err := parseConfig(cfg)
	if err != nil {
		return nil, failed("open", "", err)
	}
	client, err := remote.Open(*cfg.Host, remote.Options{DialTimeout: s.connectTimeout})
	if err != nil {
		return nil, failed("open", "", err)
	}
	return &Backend{settings: s, host: *cfg.Host, client: client, stateDir: cfg.StateDir}, nil
}

// Backend is one host, as one account of one login sees it.
type Backend struct {
	settings settings
	host     extensions.Host
	client   *remote.Client
	stateDir string            // of this user on this machine; "" stores nothing
	onStep   func(line string) // receives each step of a script; tests act there
	before   string            // precedes each script; tests hold it at a step with this
}

// Close implements extensions.Backend. Sandboxes live on.
func (b *Backend) Close() error { return b.client.Close() }
