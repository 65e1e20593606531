package daytona

import (
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Containers and virtual machines of Daytona (daytona.io), rented by the second, or containers of an installation of yours
(` + "`edition: self-hosted`" + `, version 0.190).

- **Where it runs**: at the vendor, in the organization of the credential, or on your installation. A snapshot sets image and size;
  an image of a profile is built by the vendor, and only then a size can be asked for.
- **Needs**: an API key, or a JWT with its organization. Routing considers it only where it is configured. Commands need a shell, cat,
  head, mkdir, mv, rm, sleep, tail and wc inside, files need tar.
- **Expiry**: the cloud's own, by the minute, of a paused one too. An installation of yours has no deadlines: ` + "`sweep`" + ` then, and
  the vendor's daemon ends what nobody used for its whole ttl.
- **Leaves behind**: snapshots that were kept, which hold the secrets of their sandbox; the files of builds, in the vendor's store.

The binding's ` + "`class`" + ` decides what a pause is. A container stops: what runs ends, its files stay. Its snapshots hold them, and are
taken while it is stopped; it has no forks. A virtual machine (` + "`class: linux-vm`" + `, in the cloud, from snapshots of that class) stands
still and goes on; its snapshots and forks hold its memory, and are taken while it runs.
A command's input is sent as a whole before it starts (at most 64 MiB), and there are no terminals. It allows networks and names, for every
port; organizations of the vendor's lower tiers have a policy that comes first. Nobody reaches a port inside without the header of its URL.
A sandbox that requires a ` + "`desktop`" + ` has one, if its image has the programs: its screen is the page at the URL of port 6080.`

// How long lists may lack what exists. The vendor promises nothing of either; a look-up by name is current, and a snapshot can be
// missing while it is taken.
const (
	settle = 30 * time.Second
	taking = 15 * time.Minute
)

var ofSnapshots = extensions.Find{Strength: extensions.FindEventual, Settle: taking}

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
		Powers: []extensions.Power{extensions.PowerExec, extensions.PowerFiles, extensions.PowerURL, extensions.PowerSnapshot,
			extensions.PowerFork, extensions.PowerPause, extensions.PowerExtend},
		Find:      extensions.Find{Strength: extensions.FindStrong},
		List:      extensions.List{Freshness: extensions.ListEventual, Lag: settle},
		Snapshots: extensions.Snapshots{Kinds: []extensions.SnapshotKind{extensions.SnapshotFilesystem, extensions.SnapshotMemory}, HoldsSecrets: true, Find: ofSnapshots},
		Forks:     extensions.Forks{RunningOnly: true, HoldsSecrets: true},
		Capabilities: extensions.Capabilities{
			TransportModel:      extensions.TransportDialIn,
			FsSnapshot:          true,
			PauseResume:         true,
			PausedExpiry:        extensions.ExpiryNative,
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
				extensions.RequireLongRunning, extensions.RequireNetworkEgress, extensions.RequireDesktop, "gpu", "image"}}.
				With(extensions.Provides{RequirementKinds: extensions.WorkspaceKinds}),
			IsolationLevels: []extensions.Isolation{extensions.IsolationContainer, extensions.IsolationVM},
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

// Declare implements extensions.Declarer: what a class of sandboxes is, what an installation of the user's lacks, and where a binding is.
func (x extension) Declare(values map[string]any) (d extensions.Declaration, err error) {
	own, sweep, no := extensions.PricingSelfHosted, extensions.ExpirySweep, false
	if isVM(values) {
		d.Narrowing = extensions.Narrowing{IsolationLevels: []extensions.Isolation{extensions.IsolationVM}, GPU: &no, Limits: []extensions.Limit{}}
		d.Snapshots = &extensions.Snapshots{Kinds: []extensions.SnapshotKind{extensions.SnapshotMemory}, HoldsSecrets: true, RunningOnly: true,
			Find: ofSnapshots}
	} else {
		d.Narrowing.IsolationLevels = []extensions.Isolation{extensions.IsolationContainer}
		d.Powers = slices.DeleteFunc(x.Describe().Powers, func(p extensions.Power) bool { return p == extensions.PowerFork })
		d.Snapshots = &extensions.Snapshots{Kinds: []extensions.SnapshotKind{extensions.SnapshotFilesystem}, HoldsSecrets: true,
			StopsSource: true, Find: ofSnapshots}
		d.Pauses = &extensions.Pauses{EndsWhatRuns: true}
	}
	if !isCloud(values) {
		d.Narrowing.PricingModel, d.Narrowing.Expiry, d.Narrowing.GPU = &own, &sweep, &no
	}
	return d, nil
}
