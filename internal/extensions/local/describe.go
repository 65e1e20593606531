package local

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Runs sandboxes on the machine that runs sandboxer; nothing to install, no daemon.

**Needs** Linux 5.14 or newer (amd64, arm64) with user namespaces, or ` + "`bubblewrap`" + ` where ordinary users may not
make them. Works as root (each sandbox gets an unprivileged host uid of its own) and as an ordinary user. On other
systems only profiles that say ` + "`isolation: {level: none}`" + ` run, as plain process groups without any wall.

**Isolation** is ` + "`process`" + `: own namespaces, a tmpfs root with read-only views of /usr, no capabilities, a system call
filter, Landlock. That is enough for your own code and for accidents. It is not enough for hostile code: the kernel is
shared.

Programs cannot write in /proc, so none takes itself off the list of those that the kernel ends first when memory runs out. On a
kernel without Landlock one can lower its oom_score_adj to that of sandboxer.

**Network** is all or nothing. ` + "`default: deny`" + ` is an empty network with a loopback of its own; ` + "`default: allow`" + ` is the
host's own network *including the services on its loopback*. Allowlists are refused.

**Limits**: pids always hold. Memory and CPU hold where cgroups are writable (root, or a delegated cgroup), else they are
refused, or best effort where the profile says so. The workspace and all other writable folders live in one tmpfs, whose
size is the disk limit; they occupy memory. ` + "`sandboxer host check`" + ` says which bound on memory is in force:

- With a memory cgroup the kernel bounds programs and files together, and by the cgroup's own count the largest program is
  ended when the programs alone hold more than ` + "`memory_mb`" + `.
- Without one, on best effort, what each program holds is added up five times a second, what is shared counted once (PSS), and
  the largest is ended when they pass the limit together. A program that does not let itself be looked into counts with all
  that it shares (RSS).

**Secrets** as files are written by the sandbox's own init to its ` + "`/run`" + `, which is memory and as much a part of the disk limit as
the other folders; it takes walls. As environment they are in ` + "`/proc/PID/environ`" + ` of every program inside, which root of this machine can read.

**Expiry** is enforced by the sandbox's own init on this host, also when sandboxer and Terraform are gone. A sandbox whose
folder is removed ends within seconds; one whose folder is moved shows as failed, and destroy or the next apply ends it.

Where it lies in cgroups, a small process outside removes those as soon as the init is gone.

**Leaves behind** nothing after destroy. After expiry a record of a few hundred bytes until the next run settles it.
Snapshots stay, as tar files in the state folder, until they are deleted.
`

// Describe implements extensions.Extension.
func (extension) Describe() extensions.Descriptor {
	return extensions.Descriptor{
		Handler: Handler,
		Title:   "This machine",
		Doc:     doc,
		Place:   extensions.PlaceMachine,
		Config:  configFields,
		Capabilities: extensions.Capabilities{
			TransportModel:    extensions.TransportDialIn,
			FsSnapshot:        true,
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
			Expiry:            extensions.ExpiryHost,
			ExtendTTL:         true,
			ReadOnlyWorkspace: true,
			Provides: extensions.Provides{
				RuntimeKinds: []string{"native", extensions.RequireHostBinary, extensions.RequireWorkarea},
				RequirementKinds: slices.Concat(extensions.WorkspaceKinds,
					[]string{extensions.RequireHostBinary, extensions.RequireLongRunning, extensions.RequireNetworkEgress}),
			},
			EnforcesResourceLimits: true,
			SecretsAs:              slices.Clone(extensions.SecretDeliveries),
		},
		Powers: []extensions.Power{
			extensions.PowerExec, extensions.PowerLogs, extensions.PowerFiles, extensions.PowerSnapshot,
			extensions.PowerExtend, extensions.PowerUsage, extensions.PowerCapacity, extensions.PowerProbe,
			extensions.PowerGenerationSet,
		},
		Find: extensions.Find{Strength: extensions.FindStrong},
	}
}
