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
virtual sockets, no engine socket, no host folder. Programs run as the image's user. If that would be root on the
host, they run as 1000:1000, or as the user of the profile's option ` + "`user`" + `. A group of 0 alone, as of
` + "`USER 1000:0`" + `, stays, and is the host's group 0. Where the engine has the
runtimes, ` + "`userspace-kernel`" + ` (gVisor) and ` + "`microvm`" + ` (Kata) work too.

**Network** is all or nothing. By default nothing leaves a sandbox: an agent without services has only a loopback, and
an agent with services shares a closed network with them, for which the kernel needs macvlan. sandboxer proves once per
engine and kernel that nothing answers from there, and refuses the services where something does. ` + "`default: allow`" + `
gives each sandbox its own network. Allowlists are refused. Either way agent and services find each other by name, at
their own addresses.

**Entrypoints**: the image's own, or a command; the sandbox ends when it ends. Services run their own.

**Limits** on memory, CPU and processes are enforced by the engine, divided among the containers of a sandbox.
Disk is not limited. Without limits in the profile, a sandbox gets 4096 MiB of memory, swap included, and 512
processes per container.

**Secrets**, in both forms, are kept in the sandbox's memory (tmpfs) and in no record of the engine:
` + "`docker inspect`" + `, committed images and logs do not contain them.

**Snapshots** are images of the engine. ` + "`filesystem`" + ` keeps all containers with their volumes. ` + "`workspace`" + ` keeps
only the workspace, and also restores on another engine. The sandbox stands still meanwhile, unless the snapshot is
live. A fork is such a copy of a running or paused sandbox, with its own network and secrets. No copy contains a
secret. More than 16 GiB, holes included, is not copied; where containerd keeps the images, a container's holes count
by the time that they take.

**Expiry** is enforced by the first process of each container, which ends at the deadline with everything
inside, even when sandboxer and Terraform are gone. The next run of sandboxer ends a sandbox that is paused
at its deadline. Three kinds of programs can outlive it: those of an image whose own shell is hostile; those that are
root inside, or whose image lets them change ` + "`/`" + `; and those of the same user where the machine's kernel lets them
hold the process with a debugger (` + "`kernel.yama.ptrace_scope=0`" + `). On this machine, the next run of sandboxer ends such
a sandbox, five minutes after its deadline; over SSH, only ` + "`sandboxer sweep`" + `, its destroy or the next create of its
name does. The same process ends an idle sandbox that has no services.

**Leaves behind** nothing after destroy. An expired sandbox leaves stopped containers until the next run
settles it. Pulled images stay with the engine. Snapshots stay until they are deleted. Built images are removed with
the last sandbox that runs them, unless the profile keeps them. Builds use the classic builder, without network under
default deny. A profile can ask for BuildKit, whose cache stays with the engine.
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
