package composessh

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Runs each sandbox as a Docker Compose stack on a host of yours, over SSH. Nothing is installed there.

**Needs** a Linux host with sshd, Docker Engine 20.10 or newer with Compose 2.0 or newer, and a login that may use Docker
(root, the docker group, or rootless Docker). Coreutils or busybox, tar and util-linux (flock, setsid) do the rest.

**Isolation** is ` + "`container`" + `. Who may use Docker is root on the host, so the stack is policed before it is sent:
privileged containers, host namespaces, the Docker socket, binds of the host's folders and the like are refused, each with
a rule's name and how a profile may allow it. That is a wall between a profile and the host, not between hostile tenants.

**Network** is denied by default: services reach each other by name and nothing else, which is proved once per engine. An
allowlist of networks needs ` + "`allow_firewall`" + ` on the host, one of names a pinned ` + "`proxy_image`" + `.

**Ready** means: all services run and are healthy, one-shot services have ended with 0, and the readiness probe answered.

**Limits** of memory, CPU and processes are the container engine's. Disk is not limited.

**Secrets** as files are in the host's memory (/dev/shm) and in no record of Docker. As environment they are in Docker's own: ` + "`docker inspect`, `config.v2.json`" + `
on the host's disk, and images committed of the container.

**Expiry** is enforced by a small shell loop on the host, under systemd where that is allowed, also when sandboxer and
Terraform are gone. After a reboot the next run on the host starts it anew.

**Leaves behind** nothing after destroy; with the last sandbox its folder on the host goes too. Pulled images belong
to the host; what it builds is built by the classic builder, without network under default deny. An expired sandbox leaves a record of a few hundred bytes until it is destroyed.
`

// Describe implements extensions.Extension.
func (extension) Describe() extensions.Descriptor {
	return extensions.Descriptor{
		Handler: Handler,
		Title:   "Docker Compose over SSH",
		Doc:     doc,
		Place:   extensions.PlaceHost,
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
			Expiry:              extensions.ExpiryHost,
			ExtendTTL:           true,
			ReadOnlyWorkspace:   true,
			Provides: extensions.Provides{
				RuntimeKinds:     []string{"native"},
				RequirementKinds: []string{"compose", "containers", "image", "long-running"},
			},
			EnforcesResourceLimits: true,
			SecretsAs:              slices.Clone(extensions.SecretDeliveries),
		},
		Powers: []extensions.Power{
			extensions.PowerExec, extensions.PowerLogs, extensions.PowerFiles, extensions.PowerPorts,
			extensions.PowerExtend, extensions.PowerProbe, extensions.PowerGenerationSet,
		},
		Find: extensions.Find{Strength: extensions.FindStrong},
	}
}

// OnHost implements extensions.HostNarrower: egress, expiry, accelerators and sizes as
// far as the host's owner and what was found there allow them.
func (extension) OnHost(c extensions.Capabilities, h extensions.Host, facts *extensions.HostFacts) (extensions.Capabilities, []string) {
	return onHost(c, h, facts)
}
