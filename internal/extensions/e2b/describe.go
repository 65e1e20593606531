package e2b

import (
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Runs sandboxes as microVMs of E2B (e2b.dev), billed by the second, or of a server with the same API.

- **Where it runs**: at the vendor, in the team of the API key. A template sets image and size; sandboxer reads the size back for billing.
  The vendor's builder turns a profile's image into a template once; it has access to the network.
- **Needs**: an API key, and a template based on Debian. Routing considers E2B only where it is configured.
- **Expiry**: native, to the second. The vendor never ends a paused sandbox; ` + "`sweep`" + ` does.
- **Leaves behind**: templates of images with ` + "`keep`" + `, and kept snapshots, which contain their sandbox's memory and so its secrets.

Allowlists can hold networks and names, for every port. With an allowlist, programs can still look up any name. A port inside can be
reached only with the header of its URL.`

// Claim and Settle: a create is one call that the vendor answers within seconds, and its listing shows the
// result at once as a rule; the vendor promises neither.
const (
	settle = 30 * time.Second
	claim  = 3 * time.Minute
)

// Describe implements extensions.Extension.
func (extension) Describe() extensions.Descriptor {
	most := plans["pro"].most
	return extensions.Descriptor{
		Handler: Handler,
		Title:   "E2B",
		Doc:     doc,
		Places:  []extensions.Place{extensions.PlaceAccount},
		Config:  configFields,
		Options: optionFields,
		Credentials: []extensions.CredentialField{{Name: credentialKey, Env: "E2B_API_KEY", Required: true,
			Doc: "API key of the team, from https://e2b.dev/dashboard?tab=keys."}},
		Powers: []extensions.Power{extensions.PowerExec, extensions.PowerFiles, extensions.PowerURL, extensions.PowerSnapshot,
			extensions.PowerFork, extensions.PowerPause, extensions.PowerExtend, extensions.PowerPrepareImage},
		Find: extensions.Find{Strength: extensions.FindEventual, Settle: settle, Claim: claim},
		List: extensions.List{Freshness: extensions.ListEventual, Lag: settle},
		Snapshots: extensions.Snapshots{Kinds: []extensions.SnapshotKind{extensions.SnapshotMemory}, HoldsSecrets: true, RunningOnly: true,
			Find: extensions.Find{Strength: extensions.FindEventual, Settle: settle}},
		Forks: extensions.Forks{RunningOnly: true, HoldsSecrets: true},
		Capabilities: extensions.Capabilities{
			TransportModel:      extensions.TransportDialIn,
			FsSnapshot:          true,
			PauseResume:         true,
			PausedExpiry:        extensions.ExpirySweep,
			MaxConcurrent:       &most,
			MaxSessionDuration:  plans["pro"].longest,
			Regions:             []string{"*"},
			OS:                  []string{"linux"},
			Arch:                []string{"amd64"},
			IdleCostModel:       extensions.IdleMetered,
			BillingModel:        extensions.BillingWallClock,
			CustomNetworkPolicy: true,
			EgressDefault:       extensions.NetworkAllow,
			Provides: extensions.Provides{RuntimeKinds: []string{"vendor-hosted", "workarea"}, RequirementKinds: []string{
				extensions.RequireLongRunning, extensions.RequireNetworkEgress, "image"}}.
				With(extensions.Provides{RequirementKinds: extensions.WorkspaceKinds}),
			IsolationLevels: []extensions.Isolation{extensions.IsolationMicroVM},
			PricingModel:    extensions.PricingMetered,
			Egress:          extensions.EgressDomain,
			CIDRPorts:       extensions.PortsNone,
			DomainPorts:     extensions.PortsNone,
			DNS:             extensions.DNSAllowlist,
			Ingress:         extensions.IngressClosed,
			Expiry:          extensions.ExpiryNative,
			MaxTTL:          plans["pro"].longest,
			ExtendTTL:       extensions.ExtendBoth,
			IdleReap:        extensions.IdleReapNone,
			DeadlineGrain:   time.Second,
			Entrypoints:     []extensions.EntrypointMode{extensions.EntrypointIdle},
			SecretsAs:       []extensions.SecretDelivery{extensions.SecretsEnv},
		},
	}
}

// Declare implements extensions.Declarer: what the plan of a binding allows, and where it is.
func (extension) Declare(values map[string]any) (extensions.Declaration, error) {
	p := planOf(values)
	regions := []string{extensions.RegionUnstated}
	if r := extensions.Text(values, fieldRegion); r != "" {
		regions = []string{r}
	}
	return extensions.Declaration{Narrowing: extensions.Narrowing{Regions: slices.Clone(regions), MaxConcurrent: &p.most,
		MaxTTL: &p.longest, MaxSessionDuration: &p.longest}}, nil
}
