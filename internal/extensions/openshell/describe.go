package openshell

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Sandboxes behind a gateway of NVIDIA OpenShell, on machines of yours, under a policy of files, processes and network.

- **Where it runs**: in one workspace of the gateway, which makes sandboxes with Docker, Podman, Kubernetes or as virtual machines.
- **Needs**: a gateway (0.0.111 or newer) on machines with Landlock, a client certificate or an OIDC client for it, and images with
  ` + "`/bin/sh`, `tar`, the user and each path of the policy" + `.
- **Expiry**: none of the gateway's: ` + "`sweep`" + `.
- **Leaves behind**: nothing. Its driver keeps the images that it pulled.

The profile becomes the policy: its workspace's access, its network, and by options its user, the paths that may be read and the programs
that may use the network. Files are protected by Landlock as a hard requirement, and rules of the network are enforced, not only logged.
A sandbox is ready only once the gateway says that this policy is loaded and active, and is ended if that fails: so isolation ` + "`policy`" + ` is
promised, whatever the driver. Everything outside of an allowlist is denied, so a profile that allows the whole network is refused. Programs
reach what is allowed through the gateway's proxy, which looks names up before it refuses them. A rule names one port.

A read-only workspace is what the image has: nothing can be put there under the policy. A pause stops it at the gateway: what runs
ends, and its files stay. A resume waits until the policy holds anew.`

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
			Doc: "Secret of the OIDC client; with `" + fieldIssuer + "` only."}},
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
	n := extensions.Narrowing{Regions: []string{unstated}, Arch: []string{arches[0]}}
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
