package local

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Runs sandboxes on the machine that runs sandboxer, without a daemon or an installation.

**Needs** Linux 5.14 or newer (amd64, arm64) with user namespaces, or ` + "`bubblewrap`" + ` where ordinary users may
not create them. It works as root, with an unprivileged host uid per sandbox, and as an ordinary user. Other
systems run only profiles with ` + "`isolation: {level: none}`" + `, as plain process groups.

**Isolation** is ` + "`process`" + `: separate namespaces, a tmpfs root with read-only views of /usr, no capabilities, a
system call filter, Landlock. This is enough for your own code and against accidents, but not for hostile
code: sandboxes share the host's kernel.

Programs cannot write to /proc, so none can exempt itself from the kernel's out-of-memory killer. On a kernel
without Landlock, a program can lower its oom_score_adj to that of sandboxer.

**Network** is all or nothing. ` + "`default: deny`" + ` gives an empty network with its own loopback, ` + "`default: allow`" + `
the host's network *including the services on its loopback*. Allowlists are refused.

**Limits** on processes always hold. Those on memory and CPU hold where cgroups are writable (root, or a
delegated cgroup); elsewhere they are refused, or best effort if the profile allows that. One tmpfs holds the
workspace and all other writable folders; its size is the disk limit, and it uses memory.
` + "`sandboxer host check`" + ` shows which memory limit is in force:

- With a memory cgroup, the kernel limits programs and files together. When the programs alone exceed
  ` + "`memory_mb`" + `, by the cgroup's own count, the largest one is killed.
- Without one, on best effort, sandboxer adds up the programs' memory five times a second, with shared memory
  counted once (PSS), and kills the largest when the sum exceeds the limit. A program that cannot be inspected
  counts with all of its shared memory (RSS).

**Secrets** as files need walls: the sandbox's init writes them to its ` + "`/run`" + `, which is in memory and counts
toward the disk limit. As environment variables, they are in ` + "`/proc/PID/environ`" + ` of every program inside,
which root on this machine can read.

**An entrypoint** is a command; there are no images. When it ends, the init ends, and the sandbox with it.

**Pause** stops every program with SIGSTOP. The sandbox's init keeps them stopped, and still ends the sandbox at its
deadline. Their memory stays in use. Without walls it stops the processes that carry the sandbox's ID in their
environment.

**Expiry** is enforced by the sandbox's init on this host, even when sandboxer and Terraform are gone. If a
sandbox's folder is removed, the sandbox ends within seconds. If the folder is moved, the sandbox shows as failed, and
destroy or the next apply ends it.

If the sandbox has cgroups, a small process outside it removes them as soon as the init has ended.

**Leaves behind** nothing after destroy. An expired sandbox leaves a record of a few hundred bytes until the
next run settles it. Snapshots remain as tar files in the state folder until they are deleted.
`

// Describe implements extensions.Extension.
func (extension) Describe() extensions.Descriptor {
	return extensions.Descriptor{
		Handler: Handler,
		Title:   "This machine",
		Doc:     doc,
		Places:  []extensions.Place{extensions.PlaceMachine},
		Native:  true,
		Config:  configFields,
		Capabilities: extensions.Capabilities{
			TransportModel:    extensions.TransportDialIn,
			FsSnapshot:        true,
			PauseResume:       true,
			PausedExpiry:      extensions.ExpiryHost,
			CapacityQuery:     true,
			Regions:           []string{"*"},
			OS:                []string{"linux", "darwin"},
			Arch:              []string{"*"},
			IdleCostModel:     extensions.IdleZero,
			BillingModel:      extensions.BillingFixed,
			EgressDefault:     extensions.NetworkDeny,
			IsolationLevels:   []extensions.Isolation{extensions.IsolationNone, extensions.IsolationProcess},
			PricingModel:      extensions.PricingSelfHosted,
			Egress:            extensions.EgressDenyOnly,
			DNS:               extensions.DNSClosed,
			Ingress:           extensions.IngressClosed,
			Expiry:            extensions.ExpiryHost,
			ExtendTTL:         extensions.ExtendBoth,
			IdleReap:          extensions.IdleReapHost,
			ReadOnlyWorkspace: true,
			Provides: extensions.Provides{
				RuntimeKinds: []string{"native", extensions.RequireHostBinary, extensions.RequireWorkarea},
				RequirementKinds: slices.Concat(extensions.WorkspaceKinds,
					[]string{extensions.RequireHostBinary, extensions.RequireLongRunning, extensions.RequireNetworkEgress}),
			},
			Limits:      slices.Clone(extensions.Limits),
			SecretsAs:   slices.Clone(extensions.SecretDeliveries),
			Entrypoints: []extensions.EntrypointMode{extensions.EntrypointIdle, extensions.EntrypointArgv},
		},
		Powers: []extensions.Power{
			extensions.PowerExec, extensions.PowerLogs, extensions.PowerFiles, extensions.PowerSnapshot, extensions.PowerReadSnapshot,
			extensions.PowerFork, extensions.PowerPause,
			extensions.PowerExtend, extensions.PowerUsage, extensions.PowerCapacity, extensions.PowerProbe,
			extensions.PowerGenerationSet,
		},
		Find: extensions.Find{Strength: extensions.FindStrong},
		Snapshots: extensions.Snapshots{Kinds: []extensions.SnapshotKind{extensions.SnapshotWorkspace},
			Find: extensions.Find{Strength: extensions.FindStrong}, Portable: []extensions.SnapshotKind{extensions.SnapshotWorkspace}},
		List: extensions.List{Freshness: extensions.ListStrong},
	}
}
