package daytona

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Containers of Daytona (daytona.io), rented by the second, or of an installation of yours (` + "`edition: self-hosted`" + `, version 0.190).

- **Where it runs**: at the vendor, in the organization of the credential, or on your installation. A snapshot sets image and size;
  an image of a profile is built by the vendor, and only then a size can be asked for.
- **Needs**: an API key, or a JWT with its organization. Routing considers it only where it is configured. Commands need a shell, head,
  mkdir, mv, rm, sleep, tail and wc inside, files need tar.
- **Expiry**: the cloud's own, by the minute. An installation of yours has no deadlines: ` + "`sweep`" + ` then, and the vendor's daemon ends
  what nobody used for its whole ttl.
- **Leaves behind**: nothing.

A command's input is sent as a whole before it starts (at most 64 MiB), and there are no terminals. It allows networks and names, for every
port; organizations of the vendor's lower tiers have a policy that comes first. Nobody reaches a port inside without the header of its URL.
Desktops are not offered.`

// settle is how long a listing may lack a change. The vendor promises nothing; a look-up by name is current.
const settle = 30 * time.Second

// gpuModels are those that the cloud's description names.
var gpuModels = []string{"H100", "H200", "RTX-PRO-6000", "RTX-4090", "RTX-5090"}

// Describe implements extensions.Extension.
func (extension) Describe() extensions.Descriptor {
	return extensions.Descriptor{
		Handler: Handler,
		Title:   "Daytona",
		Doc:     doc,
		Places:  []extensions.Place{extensions.PlaceAccount},
		Config:  configFields,
		Options: optionFields,
		Credentials: []extensions.CredentialField{
			{Name: credentialKey, Env: "DAYTONA_API_KEY", Doc: "API key of the organization, from https://app.daytona.io/dashboard/keys."},
			{Name: credentialJWT, Env: "DAYTONA_JWT_TOKEN", Doc: "A user's token, in place of an API key."},
			{Name: credentialOrganization, Env: "DAYTONA_ORGANIZATION_ID", Doc: "The organization that the token acts for."},
		},
		CredentialsAnyOf: [][]string{{credentialKey}, {credentialJWT, credentialOrganization}},
		Powers:           []extensions.Power{extensions.PowerExec, extensions.PowerFiles, extensions.PowerURL, extensions.PowerExtend},
		Find:             extensions.Find{Strength: extensions.FindStrong},
		List:             extensions.List{Freshness: extensions.ListEventual, Lag: settle},
		Capabilities: extensions.Capabilities{
			TransportModel:      extensions.TransportDialIn,
			Regions:             []string{"*"},
			OS:                  []string{"linux"},
			Arch:                []string{"amd64"},
			IdleCostModel:       extensions.IdleMetered,
			BillingModel:        extensions.BillingWallClock,
			GPU:                 true,
			GPUModels:           gpuModels,
			CustomNetworkPolicy: true,
			EgressDefault:       extensions.NetworkAllow,
			Provides: extensions.Provides{RuntimeKinds: []string{"vendor-hosted", "workarea"}, RequirementKinds: []string{
				extensions.RequireLongRunning, extensions.RequireNetworkEgress, "gpu", "image"}}.
				With(extensions.Provides{RequirementKinds: extensions.WorkspaceKinds}),
			IsolationLevels: []extensions.Isolation{extensions.IsolationContainer},
			PricingModel:    extensions.PricingMetered,
			Egress:          extensions.EgressDomain,
			CIDRPorts:       extensions.PortsNone,
			DomainPorts:     extensions.PortsNone,
			DNS:             extensions.DNSAllowlist,
			Ingress:         extensions.IngressClosed,
			Expiry:          extensions.ExpiryNative,
			IdleReap:        extensions.IdleReapNone,
			ExtendTTL:       extensions.ExtendBoth,
			DeadlineGrain:   time.Minute,
			Limits:          []extensions.Limit{extensions.LimitCPU, extensions.LimitMemory, extensions.LimitDisk},
			CPUStep:         1000,
			MemoryStepMB:    1024,
			DiskStepMB:      1024,
			Entrypoints:     []extensions.EntrypointMode{extensions.EntrypointIdle},
			SecretsAs:       []extensions.SecretDelivery{extensions.SecretsEnv},
		},
	}
}

// Declare implements extensions.Declarer: what an installation of the user's lacks, and where a binding is.
func (extension) Declare(values map[string]any) (extensions.Declaration, error) {
	var n extensions.Narrowing
	if !isCloud(values) {
		own, sweep, no := extensions.PricingSelfHosted, extensions.ExpirySweep, false
		n = extensions.Narrowing{PricingModel: &own, Expiry: &sweep, GPU: &no}
	}
	return extensions.Declaration{Narrowing: n}, nil
}
