// Package local runs sandboxes on this machine, with nothing to install and no daemon.
//
// # Where it runs
//
// On the machine that runs sandboxer. Each sandbox is one small init process with its own user, mount, pid,
// ipc, uts and cgroup namespaces and, unless the profile allows the host's network, its own empty network.
// Its file system is one tmpfs of bounded size with read-only views of /usr. Its programs run without
// capabilities under a system call filter, with Landlock as the second layer.
//
// # Needs
//
// Linux 5.14 or newer on amd64 or arm64, and user namespaces, or bubblewrap if ordinary users may not create
// them. Under root, each sandbox gets an unprivileged host uid of its own. Elsewhere only profiles with
// isolation none run, as plain process groups without walls.
//
// # Capabilities
//
// The level is process: enough for your own code and for accidents, not for code that sets out to break the
// kernel. Commands with terminals, files, logs, snapshots of the workspace as verified tar files, a movable
// deadline, egress all or nothing. Limits that cannot be enforced are refused.
//
// # Expiry
//
// By the host: the sandbox's own init reads its lease and ends everything at the deadline, even if nothing is
// watching. It also ends when its folder is removed, since nobody can reach it then. What it held in memory
// goes with it. Number, start time and boot identify the process, from the record in the folder, the copy
// beside it, or the handle: while it runs, it is never reported gone.
//
// # Leaves behind
//
// Nothing after a teardown. A sandbox that expired leaves a record of a few hundred bytes until the next run
// settles it. Snapshots stay until deleted.
package local

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Handler is the name that catalogs bind to.
const Handler = "local"

// New returns the extension.
func New() extensions.Extension { return extension{} }

type extension struct{}

// Open implements extensions.Extension. It creates nothing; Provision or Probe finds what the machine lacks.
func (extension) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := parseConfig(cfg)
	if err != nil {
		return nil, failed("open", "", err)
	}
	return &Backend{settings: s}, nil
}

// Backend is this machine, as one account of one user sees it.
type Backend struct{ settings settings }

// Close implements extensions.Backend. Nothing is kept open between calls.
func (*Backend) Close() error { return nil }
