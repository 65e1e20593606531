package modal

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Runs sandboxes at Modal (modal.com), billed by the second, with GPUs.

- **Where it runs**: at the vendor, in one app of the token's workspace. A profile sets image and size; Modal pulls or builds the image.
- **Needs**: a token, and images with ` + "`/bin/sh` and `tar`" + `. Routing considers Modal only where it is configured.
- **Expiry**: native, to the second, after at most 24 hours. Modal fixes it at the create; it cannot be extended.
- **Leaves behind**: the app and built images, which cost nothing, and kept snapshots, for 30 days. Snapshots contain the sandbox's
  files, its secrets among them. A snapshot that is interrupted before it has its name also stays that long.

Allowlists can hold networks for every port, and names for port 443 only. With an allowlist, programs can still look up any name. A port
inside can be reached only with the header of its URL, unless the binding's ` + "`public_ports`" + ` open it to everybody. sandboxer pins
the runtime to gVisor unless the binding says otherwise. A required region costs more; a sandbox that runs in another one is ended.
Modal does not report usage, so a sandbox is priced by its size over time. Its size is also its limit, so that it cannot use more:
the ` + "`resources`" + ` of the profile, or 1 vCPU and 1 GiB.
A sandbox with a GPU runs on the vendor's older backend; the handle records that.`

// settle is how long what is new may be missing in a list. The vendor promises nothing.
const settle = 30 * time.Second

const (
	longest    = 24 * time.Hour      // of a sandbox: https://modal.com/docs/guide/sandboxes, read 2026-11-20
	snapshotOf = 30 * 24 * time.Hour // how long a snapshot is kept
)

// gpus are the models that the vendor's guide names; see the specifications' page, 2026-11-20.
var gpus = []string{"T4", "L4", "A10", "A100", "A100-80GB", "L40S", "H100", "H200", "B200"}

// Describe implements extensions.Extension.
func (extension) Describe() extensions.Descriptor {
	return extensions.Descriptor{
		Handler: Handler,
		Title:   "Modal",
		Doc:     doc,
		Places:  []extensions.Place{extensions.PlaceAccount},
		Config:  configFields,
		Options: optionFields,
		Credentials: []extensions.CredentialField{
			{Name: credentialID, Env: "MODAL_TOKEN_ID", Required: true, Doc: "The token's id, from https://modal.com/settings/tokens."},
			{Name: credentialSecret, Env: "MODAL_TOKEN_SECRET", Required: true, Doc: "The token's secret."},
		},
		Powers: []extensions.Power{extensions.PowerExec, extensions.PowerFiles, extensions.PowerURL, extensions.PowerSnapshot,
			extensions.PowerPrepareImage},
		Find: extensions.Find{Strength: extensions.FindStrong},
		List: extensions.List{Freshness: extensions.ListEventual, Lag: settle},
		Snapshots: extensions.Snapshots{Kinds: []extensions.SnapshotKind{extensions.SnapshotFilesystem}, HoldsSecrets: true, Expires: snapshotOf,
			Find: extensions.Find{Strength: extensions.FindEventual, Settle: settle}},
		Capabilities: extensions.Capabilities{
			TransportModel: extensions.TransportDialIn, Regions: []string{"*"}, OS: []string{"linux"}, Arch: []string{"amd64"},
			IsolationLevels: []extensions.Isolation{extensions.IsolationContainer, extensions.IsolationUserspace},
			FsSnapshot:      true, MaxSessionDuration: longest,
			PricingModel: extensions.PricingMetered, IdleCostModel: extensions.IdleMetered, BillingModel: extensions.BillingWallClock,
			GPU: true, GPUModels: slices.Clone(gpus),
			Limits:  []extensions.Limit{extensions.LimitCPU, extensions.LimitMemory},
			CPUStep: 2, // a core has 2 vCPU, and Modal takes thousandths of cores
			Provides: extensions.Provides{RuntimeKinds: []string{"vendor-hosted", "workarea"}, RequirementKinds: []string{
				extensions.RequireLongRunning, extensions.RequireNetworkEgress, "gpu", "image"}}.
				With(extensions.Provides{RequirementKinds: extensions.WorkspaceKinds}),
			CustomNetworkPolicy: true, EgressDefault: extensions.NetworkAllow, Egress: extensions.EgressDomain,
			CIDRPorts: extensions.PortsNone, DomainPorts: extensions.PortsHTTPS, DNS: extensions.DNSAllowlist, Ingress: extensions.IngressClosed,
			Expiry: extensions.ExpiryNative, IdleReap: extensions.IdleReapNone, MaxTTL: longest, ExtendTTL: extensions.ExtendNone,
			DeadlineGrain: time.Second, Entrypoints: []extensions.EntrypointMode{extensions.EntrypointIdle},
			SecretsAs: []extensions.SecretDelivery{extensions.SecretsEnv},
		},
	}
}

// Declare implements extensions.Declarer: which runtime a binding has, where it can be asked to run, who reaches its ports,
// and its plan's limit.
func (extension) Declare(values map[string]any) (extensions.Declaration, error) {
	walls := extensions.IsolationUserspace
	if extensions.Text(values, fieldRuntime) == runtimeAny {
		walls = extensions.IsolationContainer
	}
	n := extensions.Narrowing{Regions: slices.Sorted(maps.Keys(within)), IsolationLevels: []extensions.Isolation{walls}}
	if public := extensions.IngressPublic; len(extensions.Strings(values[fieldPublic])) > 0 {
		n.Ingress = &public
	}
	if most, ok := plans[cmp.Or(extensions.Text(values, fieldPlan), planNames[0])]; ok {
		n.MaxConcurrent = &most
	}
	return extensions.Declaration{Narrowing: n}, nil
}
