package docker

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Runs each sandbox in a container, or in an agent with services, through the API of a Docker engine: this
machine's, one at a TLS address, or that of a host over SSH. Nothing is installed.

**Needs** Docker Engine 20.10 or newer with Linux containers. Rootless Docker works; without cgroup v2 it limits and freezes
nothing, so there are no pauses, no forks and only live snapshots. The agent's image needs
` + "`/bin/sh`, `sleep` and `date`" + `; its services' images need nothing.

**Isolation** is ` + "`container`" + `: no capabilities, no new privileges, Docker's system call filter without
virtual sockets, no socket of the engine, no folder of the host. The user is the image's, unless that would be
root on the host: then it is 1000:1000, or what the profile's option ` + "`user`" + ` says. Where the engine has the
runtimes, ` + "`userspace-kernel`" + ` (gVisor) and ` + "`microvm`" + ` (Kata) work too.

**Network** is all or nothing. By default nothing leaves a sandbox: an agent alone has nothing but a loopback, and with
services all meet on a network that ends at itself, for which the kernel needs macvlan. ` + "`default: allow`" + ` gives
each sandbox a network of its own. Allowlists are refused. Either way agent and services find each other by name, at
addresses of their own.

**Entrypoints**: the image's own, or a command; its end is the sandbox's. Services run their own.

**Limits** on memory, CPU and processes are enforced by the engine, divided among the containers of a sandbox.
Disk is not limited. Without limits in the profile, a sandbox gets 4096 MiB of memory, swap included, and 512
processes per container.

**Secrets** are in the sandbox's memory (tmpfs) in both forms, and in no record of the engine: neither
` + "`docker inspect`" + ` nor a committed image nor a log has them.

**Snapshots** are images of the engine. ` + "`filesystem`" + ` keeps all containers with their volumes, ` + "`workspace`" + ` the
workspace alone, which also restores on another engine. Nothing runs meanwhile, unless the snapshot is live. A fork is
such a copy of a running or paused sandbox, with a network and secrets of its own. None has a secret. More than
16 GiB, holes included, is not copied.

**Expiry** is enforced by the first process of each container, which ends at the deadline with everything
inside, even when sandboxer and Terraform are gone. While a sandbox is paused, the next run of sandboxer ends
it. A program that runs as the same user could hold that process with a debugger, where the machine's kernel
allows it (` + "`kernel.yama.ptrace_scope=0`" + `); then too the next run ends it. The same process ends a sandbox without
services that is idle.

**Leaves behind** nothing after destroy. An expired sandbox leaves stopped containers until the next run
settles it. Pulled images stay with the engine, and
snapshots until they are deleted. Built ones go with the last sandbox that runs them, unless the
profile keeps them. Builds use the classic builder, without network under default deny; the cache of BuildKit, where
a profile asks for it, stays with the engine.
`

// Describe implements extensions.Extension.
func (extension) Describe() extensions.Descriptor {
	return extensions.Descriptor{
		Handler:     Handler,
		Title:       "Docker",
		Doc:         doc,
		Places:      []extensions.Place{extensions.PlaceMachine, extensions.PlaceHost},
		Config:      configFields,
		Options:     optionFields,
		Credentials: credentialFields,
		Capabilities: extensions.Capabilities{
			TransportModel: extensions.TransportDialIn,
			FsSnapshot:     true,
			PauseResume:    true,
			CapacityQuery:  true,
			Regions:        []string{"*"},
			OS:             []string{"linux"},
			Arch:           []string{"*"},
			IdleCostModel:  extensions.IdleZero,
			BillingModel:   extensions.BillingFixed,
			EgressDefault:  extensions.NetworkDeny,
			IsolationLevels: []extensions.Isolation{extensions.IsolationContainer, extensions.IsolationUserspace,
				extensions.IsolationMicroVM},
			PricingModel:      extensions.PricingSelfHosted,
			Egress:            extensions.EgressDenyOnly,
			DNS:               extensions.DNSClosed,
			Ingress:           extensions.IngressClosed,
			PausedExpiry:      extensions.ExpirySweep,
			Expiry:            extensions.ExpiryHost,
			ExtendTTL:         extensions.ExtendBoth,
			IdleReap:          extensions.IdleReapHost,
			ReadOnlyWorkspace: true,
			Provides: extensions.Provides{
				RuntimeKinds: []string{"native", extensions.RequireWorkarea},
				RequirementKinds: slices.Concat(extensions.WorkspaceKinds, []string{"containers", "image",
					extensions.RequireLongRunning, extensions.RequireNetworkEgress}),
			},
			Limits:      []extensions.Limit{extensions.LimitCPU, extensions.LimitMemory, extensions.LimitPids},
			SecretsAs:   slices.Clone(extensions.SecretDeliveries),
			Entrypoints: slices.Clone(extensions.EntrypointModes),
		},
		Powers: []extensions.Power{
			extensions.PowerExec, extensions.PowerLogs, extensions.PowerFiles, extensions.PowerPorts, extensions.PowerSnapshot,
			extensions.PowerReadSnapshot, extensions.PowerFork, extensions.PowerPause, extensions.PowerExtend, extensions.PowerUsage,
			extensions.PowerCapacity, extensions.PowerProbe, extensions.PowerPrepareImage, extensions.PowerGenerationSet,
		},
		Find: extensions.Find{Strength: extensions.FindStrong},
		Snapshots: extensions.Snapshots{
			Kinds:    []extensions.SnapshotKind{extensions.SnapshotFilesystem, extensions.SnapshotWorkspace},
			Find:     extensions.Find{Strength: extensions.FindStrong},
			Portable: []extensions.SnapshotKind{extensions.SnapshotWorkspace},
		},
		List: extensions.List{Freshness: extensions.ListStrong},
	}
}
