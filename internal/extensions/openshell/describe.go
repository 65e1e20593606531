package openshell

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Runs sandboxes behind a gateway of NVIDIA OpenShell, on your own machines, under a policy for files, processes and network.

- **Where it runs**: in one workspace of the gateway, which creates sandboxes with Docker, Podman, Kubernetes or as virtual machines.
- **Needs**: a gateway (0.0.111 or newer) on machines with Landlock, a client certificate or an OIDC client for it, and images with
  ` + "`/bin/sh`, `tar`, the user and each path of the policy" + `.
- **Expiry**: the gateway has no deadlines; ` + "`sweep`" + ` ends sandboxes.
- **Leaves behind**: nothing. The gateway's driver keeps the images that it pulled.

The policy comes from the profile: its workspace access, its network, and options for the user, the readable paths and the programs that
may use the network. Landlock must protect the files, and network rules are enforced, not only logged. A sandbox is ready only once the
gateway reports this policy as loaded and active; if that fails, the sandbox is ended. So isolation ` + "`policy`" + ` holds for every
driver. Everything outside an allowlist is denied, so a profile that allows the whole network is refused. Programs reach allowed
destinations through the gateway's proxy, which looks names up before it refuses them. A rule names one port.

A read-only workspace holds what the image has in it: the policy lets nothing be put there. A pause stops the sandbox at the gateway: its
processes end, and its files stay. A resume waits until the policy is loaded again.`

// Describe implements extensions.Extension.
func (extension) Describe() extensions.Descriptor {
	return extensions.Descriptor{
		Handler: Handler,
		Title:   "OpenShell",
		Doc:     doc,
		Places:  []extensions.Place{extensions.PlaceAccount},
		Config:  configFields,
		Options: optionFields,
		Credentials: []extensions.CredentialField{{Name: credentialSecret, Env: "OPENSHELL_OIDC_CLIENT_SECRET",
			Doc: "Secret of the OIDC client; only with `" + fieldIssuer + "`."}},
		Powers: []extensions.Power{extensions.PowerExec, extensions.PowerFiles, extensions.PowerPorts, extensions.PowerPause},
		Find:   extensions.Find{Strength: extensions.FindStrong},
		List:   extensions.List{Freshness: extensions.ListStrong},
		Pauses: extensions.Pauses{EndsWhatRuns: true},
		Capabilities: extensions.Capabilities{
			TransportModel:      extensions.TransportDialIn,
			Regions:             []string{"*"},
			OS:                  []string{"linux"},
			Arch:                slices.Clone(arches),
			IdleCostModel:       extensions.IdleZero,
			BillingModel:        extensions.BillingFixed,
			GPU:                 true,
			PauseResume:         true,
			PausedExpiry:        extensions.ExpirySweep,
			CustomNetworkPolicy: true,
			EgressDefault:       extensions.NetworkDeny,
			Provides: extensions.Provides{RuntimeKinds: []string{extensions.RequireWorkarea}, RequirementKinds: []string{
				extensions.RequireLongRunning, extensions.RequireNetworkEgress, "gpu", "image"}}.
				With(extensions.Provides{RequirementKinds: extensions.WorkspaceKinds}),
			IsolationLevels:   []extensions.Isolation{extensions.IsolationContainer, extensions.IsolationPolicy},
			PricingModel:      extensions.PricingSelfHosted,
			Egress:            extensions.EgressDomain,
			CIDRPorts:         extensions.PortsOne,
			DomainPorts:       extensions.PortsOne,
			DNS:               extensions.DNSOpen, // https://github.com/NVIDIA/OpenShell/issues/1169, read on 2026-11-24
			Ingress:           extensions.IngressClosed,
			Expiry:            extensions.ExpirySweep,
			ExtendTTL:         extensions.ExtendNone,
			IdleReap:          extensions.IdleReapNone,
			ReadOnlyWorkspace: true,
			Limits:            []extensions.Limit{extensions.LimitCPU, extensions.LimitMemory},
			Entrypoints:       []extensions.EntrypointMode{extensions.EntrypointIdle},
			SecretsAs:         []extensions.SecretDelivery{extensions.SecretsEnv},
		},
	}
}

// Declare implements extensions.Declarer: where a gateway is, what machines it has, and whether its driver holds sizes.
func (extension) Declare(values map[string]any) (extensions.Declaration, error) {
	n := extensions.Narrowing{Regions: []string{extensions.RegionUnstated}, Arch: []string{arches[0]}}
	if r := extensions.Text(values, fieldRegion); r != "" {
		n.Regions = []string{r}
	}
	if a := extensions.Text(values, fieldArch); a != "" {
		n.Arch = []string{a}
	}
	if s := (settings{driver: extensions.Text(values, fieldDriver)}); !s.sized() {
		n.Limits = []extensions.Limit{}
	}
	return extensions.Declaration{Narrowing: n}, nil
}
