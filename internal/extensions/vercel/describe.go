package vercel

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Runs sandboxes as microVMs of Vercel (vercel.com), billed by CPU used, memory provisioned and traffic.

- **Where it runs**: at the vendor, in one project of a team. Memory follows the vCPUs: 2048 MiB each.
- **Needs**: an OIDC token of the project, or an access token with the ids of team and project. Routing considers Vercel only where it is
  configured.
- **Expiry**: native. A deadline can only be moved later, up to the plan's limit. An ended sandbox stays listed, free of charge, until it is
  destroyed.
- **Leaves behind**: only kept snapshots, for 30 days after their last use. They contain the files of their sandbox, its secrets
  among them.
- **Snapshots** end their sandbox. They carry no id; the ended sandbox identifies its snapshot, and stays until the snapshot is recorded.

Allowlists can hold networks and names, for every port; names are matched by TLS (SNI). With an allowlist, programs can still look up any
name. Anyone who knows a port's address can reach it, but only once you have asked for its URL. A command has no terminal, and starts
once all its input is there. The vendor's record of commands contains no arguments, variables or output.`

// lag is how long a listing may miss a change. The vendor promises nothing; a sandbox is looked up by its name at once.
const lag = 30 * time.Second

// Describe implements extensions.Extension.
func (extension) Describe() extensions.Descriptor {
	largest := plans["enterprise"]
	memory := largest.cpus * memoryPerCPU
	return extensions.Descriptor{
		Handler: Handler,
		Title:   "Vercel Sandbox",
		Doc:     doc,
		Places:  []extensions.Place{extensions.PlaceAccount},
		Config:  configFields,
		Options: optionFields,
		Credentials: []extensions.CredentialField{
			{Name: credentialOIDC, Env: "VERCEL_OIDC_TOKEN", Doc: "OIDC token of the project, from `vercel env pull`. It lasts 12 h."},
			{Name: credentialToken, Env: "VERCEL_TOKEN", Doc: "Access token, from https://vercel.com/account/tokens."},
			{Name: credentialTeam, Env: "VERCEL_TEAM_ID", Doc: "ID of the team: `team_…`."},
			{Name: credentialProject, Env: "VERCEL_PROJECT_ID", Doc: "ID of the project: `prj_…`."},
		},
		CredentialsAnyOf: [][]string{{credentialOIDC}, {credentialToken, credentialTeam, credentialProject}},
		Powers: []extensions.Power{extensions.PowerExec, extensions.PowerFiles, extensions.PowerURL, extensions.PowerExtend,
			extensions.PowerUsage, extensions.PowerSnapshot},
		Snapshots: extensions.Snapshots{Kinds: []extensions.SnapshotKind{extensions.SnapshotFilesystem}, EndsSource: true, HoldsSecrets: true,
			Expires: keptFor, Find: extensions.Find{Strength: extensions.FindEventual, Settle: lag}},
		Find: extensions.Find{Strength: extensions.FindStrong},
		List: extensions.List{Freshness: extensions.ListEventual, Lag: lag},
		Capabilities: extensions.Capabilities{
			TransportModel:      extensions.TransportDialIn,
			FsSnapshot:          true,
			MaxConcurrent:       &largest.most,
			MaxSessionDuration:  largest.longest,
			Regions:             []string{"*"},
			OS:                  []string{"linux"},
			Arch:                []string{"amd64"},
			IdleCostModel:       extensions.IdleMetered,
			BillingModel:        extensions.BillingActiveCPU,
			MaxVCPU:             &largest.cpus,
			MaxMemoryMB:         &memory,
			CustomNetworkPolicy: true,
			EgressDefault:       extensions.NetworkAllow,
			Provides: extensions.Provides{RuntimeKinds: []string{"vendor-hosted", "workarea"}, RequirementKinds: []string{
				extensions.RequireLongRunning, extensions.RequireNetworkEgress}}.
				With(extensions.Provides{RequirementKinds: extensions.WorkspaceKinds}),
			IsolationLevels: []extensions.Isolation{extensions.IsolationMicroVM},
			PricingModel:    extensions.PricingMetered,
			Egress:          extensions.EgressDomain,
			CIDRPorts:       extensions.PortsNone,
			DomainPorts:     extensions.PortsNone,
			DNS:             extensions.DNSAllowlist,
			Ingress:         extensions.IngressPublic,
			Expiry:          extensions.ExpiryNative,
			IdleReap:        extensions.IdleReapNone,
			MaxTTL:          largest.longest,
			ExtendTTL:       extensions.ExtendLater,
			DeadlineGrain:   time.Second,
			Limits:          []extensions.Limit{extensions.LimitCPU, extensions.LimitMemory},
			CPUStep:         1000,
			MemoryStepMB:    memoryPerCPU,
			MemoryPerCPUMB:  memoryPerCPU,
			Entrypoints:     []extensions.EntrypointMode{extensions.EntrypointIdle},
			SecretsAs:       []extensions.SecretDelivery{extensions.SecretsEnv},
		},
	}
}

// Declare implements extensions.Declarer: what the plan of a binding allows, and where it is.
func (extension) Declare(values map[string]any) (extensions.Declaration, error) {
	p := planOf(values)
	memory := p.cpus * memoryPerCPU
	n := extensions.Narrowing{MaxConcurrent: &p.most, MaxTTL: &p.longest, MaxSessionDuration: &p.longest, MaxVCPU: &p.cpus,
		MaxMemoryMB: &memory}
	if r := extensions.Text(values, fieldRegion); r != "" {
		n.Regions = []string{r}
	}
	return extensions.Declaration{Narrowing: n}, nil
}
