package composessh

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Runs each sandbox as a Docker Compose stack on your own host, over SSH. Nothing is installed there.
To use this machine as the host, give its own sshd as ` + "`ssh`" + `; a host with ` + "`local = true`" + ` is refused.

**Needs** a Linux host with sshd, Docker Engine 20.10 or newer, Compose 2.0 or newer, and a login that may use
Docker (root, the docker group, or rootless Docker). The host also needs coreutils or busybox, tar and
util-linux (flock, setsid).

**Isolation** is ` + "`container`" + `. Anyone who may use Docker is root on the host, so a policy checks the stack
before it is sent. It refuses privileged containers, host namespaces, the Docker socket, binds of the host's
folders and similar; each refusal names its rule and the option that lifts it, if any. The policy separates a
profile from the host; it does not separate hostile users of one host.

**Network** access is denied by default: services reach only each other, by name. sandboxer proves this once per
engine. An allowlist of networks needs ` + "`allow_firewall`" + ` on the host; one of names needs a pinned ` + "`proxy_image`" + `.

**Ready** means that all services run and are healthy, one-shot services exited with 0, and the readiness
probe succeeded.

**Limits** on memory, CPU and processes are enforced by the container engine. Disk is not limited.

**Secrets** as files are in the host's memory (/dev/shm) and in no record of Docker. As environment variables,
they are in Docker's records: ` + "`docker inspect`" + `, ` + "`config.v2.json`" + ` on the host's disk, and images committed from
the container.

**Pause** freezes all containers of the stack with Docker; their memory stays in use. The host's loop ends a paused
sandbox at its deadline.

**Snapshots** are kept on the host, in a folder beside the sandboxes, until they are deleted. They hold the workspace
and the named volumes, or also the containers' own file systems, but no secrets. The containers are paused during the
copy. A snapshot restores on this host or on another one. A fork copies a sandbox in the same way.

**Expiry** is enforced by a small shell loop on the host, under systemd where possible, even when sandboxer
and Terraform are gone. After a reboot the next run on the host restarts it.

**Leaves behind** nothing after destroy except snapshots; the last sandbox also removes its folder on the host. Pulled images
stay on the host. Builds use the classic builder, without network under default deny. A built image is removed with
the last sandbox that uses it, or after 15 minutes if none does. An expired sandbox leaves a record of
a few hundred bytes until it is destroyed.
`

// Describe implements extensions.Extension.
func (extension) Describe() extensions.Descriptor {
	return extensions.Descriptor{
		Handler: Handler,
		Title:   "Docker Compose over SSH",
		Doc:     doc,
		Places:  []extensions.Place{extensions.PlaceHost},
		Config:  configFields,
		Options: optionFields,
		Capabilities: extensions.Capabilities{
			TransportModel:      extensions.TransportDialIn,
			Regions:             []string{"*"},
			OS:                  []string{"linux"},
			Arch:                []string{"*"},
			IdleCostModel:       extensions.IdleZero,
			BillingModel:        extensions.BillingFixed,
			GPU:                 true,
			CustomNetworkPolicy: true,
			EgressDefault:       extensions.NetworkDeny,
			IsolationLevels:     []extensions.Isolation{extensions.IsolationContainer},
			PricingModel:        extensions.PricingSelfHosted,
			Egress:              extensions.EgressDomain,
			CIDRPorts:           extensions.PortsAny,
			DomainPorts:         extensions.PortsAny,
			DNS:                 extensions.DNSClosed,
			Ingress:             extensions.IngressClosed,
			Expiry:              extensions.ExpiryHost,
			ExtendTTL:           extensions.ExtendBoth,
			IdleReap:            extensions.IdleReapHost,
			FsSnapshot:          true,
			PauseResume:         true,
			PausedExpiry:        extensions.ExpiryHost,
			ReadOnlyWorkspace:   true,
			Provides: extensions.Provides{
				RuntimeKinds: []string{"native", extensions.RequireWorkarea},
				RequirementKinds: slices.Concat(extensions.WorkspaceKinds, []string{"compose", "containers", "image",
					extensions.RequireLongRunning, extensions.RequireNetworkEgress, extensions.RequirePersistentStorage}),
			},
			Limits:      []extensions.Limit{extensions.LimitCPU, extensions.LimitMemory, extensions.LimitPids},
			SecretsAs:   slices.Clone(extensions.SecretDeliveries),
			Entrypoints: slices.Clone(extensions.EntrypointModes),
		},
		Powers: []extensions.Power{
			extensions.PowerExec, extensions.PowerLogs, extensions.PowerFiles, extensions.PowerPorts,
			extensions.PowerSnapshot, extensions.PowerReadSnapshot, extensions.PowerFork,
			extensions.PowerPause, extensions.PowerExtend, extensions.PowerProbe, extensions.PowerPrepareImage,
			extensions.PowerGenerationSet,
		},
		Find:      extensions.Find{Strength: extensions.FindStrong},
		List:      extensions.List{Freshness: extensions.ListStrong},
		Snapshots: snapshots,
	}
}

// OnHost implements extensions.HostNarrower: egress is what the host's owner allows.
func (extension) OnHost(c extensions.Capabilities, h extensions.Host) (extensions.Capabilities, []string) {
	egress, reasons := hostEgress(h)
	if egress.Includes(c.Egress) {
		return c, nil
	}
	return c.Within(extensions.Narrowing{Egress: &egress}), reasons
}
