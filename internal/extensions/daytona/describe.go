package daytona

import (
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Runs sandboxes as containers or virtual machines of Daytona (daytona.io), billed by the second, or as containers of your own
installation (` + "`edition: self-hosted`" + `, version 0.190).

- **Where it runs**: at the vendor, in the organization of the credential, or on your installation. A container starts from a snapshot,
  and gets the size that its profile asks for, or from an image, which the vendor builds. A snapshot sets a virtual machine's size.
- **Needs**: an API key, or a JWT with its organization. Routing considers Daytona only where it is configured. Commands need a shell,
  cat, head, mkdir, mv, rm, sleep, tail and wc inside; file transfers need tar.
- **Expiry**: native in the cloud, to the minute, also while paused. Your own installation has no deadlines: ` + "`sweep`" + ` ends
  sandboxes, and the vendor's daemon ends one that was not used for its whole ttl.
- **Leaves behind**: kept snapshots, which contain the secrets of their sandbox, and the files of builds, in the vendor's store.

A pause stops a container: its processes end, its files stay. Its snapshots hold the files and are taken then; it has no forks. A pause
freezes a virtual machine (` + "`class: linux-vm`" + `, cloud only); its snapshots and forks hold its memory and are taken while it runs.
Input is sent completely before the command starts (at most 64 MiB); there are no terminals. Allowlists can hold networks and names, for
every port; a policy of the vendor's lower tiers takes precedence. A port inside can be reached only with the header of its URL.
The screen of a required ` + "`desktop`" + ` is the page at the URL of port 6080, if the image has the programs.`

const settle = 30 * time.Second // how long lists may lack what exists: the vendor promises nothing, but for look-ups by name

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
		Snapshots: snapshotsOf(extensions.SnapshotFilesystem, extensions.SnapshotMemory),
		Forks:     extensions.Forks{RunningOnly: true, HoldsSecrets: true},
		Capabilities: extensions.Capabilities{
			TransportModel: extensions.TransportDialIn, Regions: []string{"*"}, OS: []string{"linux"}, Arch: []string{"amd64"},
			IsolationLevels: []extensions.Isolation{extensions.IsolationContainer, extensions.IsolationVM},
			FsSnapshot:      true, PauseResume: true, PausedExpiry: extensions.ExpiryNative,
			PricingModel: extensions.PricingMetered, IdleCostModel: extensions.IdleMetered, BillingModel: extensions.BillingWallClock,
			GPU: true, GPUModels: []string{"H100", "H200", "RTX-PRO-6000", "RTX-4090", "RTX-5090"}, // as the cloud's description has them
			Limits:  []extensions.Limit{extensions.LimitCPU, extensions.LimitMemory, extensions.LimitDisk},
			CPUStep: 1000, MemoryStepMB: 1024, DiskStepMB: 1024,
			Provides: extensions.Provides{RuntimeKinds: []string{"vendor-hosted", "workarea"}, RequirementKinds: []string{
				extensions.RequireLongRunning, extensions.RequireNetworkEgress, extensions.RequireDesktop, "gpu", "image"}}.
				With(extensions.Provides{RequirementKinds: extensions.WorkspaceKinds}),
			CustomNetworkPolicy: true, EgressDefault: extensions.NetworkAllow, Egress: extensions.EgressDomain,
			CIDRPorts: extensions.PortsNone, DomainPorts: extensions.PortsNone, DNS: extensions.DNSAllowlist, Ingress: extensions.IngressClosed,
			Expiry: extensions.ExpiryNative, IdleReap: extensions.IdleReapNone, ExtendTTL: extensions.ExtendBoth, DeadlineGrain: time.Minute,
			Entrypoints: []extensions.EntrypointMode{extensions.EntrypointIdle},
			SecretsAs:   []extensions.SecretDelivery{extensions.SecretsEnv},
		},
	}
}

// snapshotsOf is what all snapshots are like here.
func snapshotsOf(kinds ...extensions.SnapshotKind) extensions.Snapshots {
	return extensions.Snapshots{Kinds: kinds, HoldsSecrets: true, Find: extensions.Find{Strength: extensions.FindEventual, Settle: settle}}
}

// Declare implements extensions.Declarer: what a class of sandboxes is, and what an installation of the user's lacks.
func (x extension) Declare(values map[string]any) (d extensions.Declaration, err error) {
	own, sweep, no, kept := extensions.PricingSelfHosted, extensions.ExpirySweep, false, snapshotsOf(extensions.SnapshotFilesystem)
	if isVM(values) {
		kept = snapshotsOf(extensions.SnapshotMemory)
		kept.RunningOnly = true
		d.Narrowing.IsolationLevels, d.Narrowing.Limits = []extensions.Isolation{extensions.IsolationVM}, []extensions.Limit{}
		d.Narrowing.GPU = &no
	} else {
		kept.StopsSource = true
		d.Narrowing.IsolationLevels = []extensions.Isolation{extensions.IsolationContainer}
		d.Powers = slices.DeleteFunc(x.Describe().Powers, func(p extensions.Power) bool { return p == extensions.PowerFork })
		d.Pauses = &extensions.Pauses{EndsWhatRuns: true}
	}
	if d.Snapshots = &kept; !isCloud(values) {
		d.Narrowing.PricingModel, d.Narrowing.Expiry, d.Narrowing.GPU = &own, &sweep, &no
	}
	return d, nil
}
