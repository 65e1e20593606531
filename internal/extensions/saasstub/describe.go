package saasstub

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

const doc = `A metered vendor for trying things out and for tests. It is a test double: nothing runs, nothing is isolated, nothing is billed.

- **Where it runs**: nowhere; its state is a folder of this machine. Commands are interpreted by a small built-in shell that sees the sandbox's own files only. Do not give it code you do not trust.
- **Needs**: nothing.
- **Expiry**: native; the vendor's clock ends a sandbox at the deadline sent at create.
- **Leaves behind**: its folder, with the snapshots that were kept.

Nothing leaves: "send HOST PORT WORD" and "lookup NAME" obey the network policy, and what arrives is in the vendor's own books.
Isolation, resource limits and memory for the files of secrets are the claims of the pretend vendor: they let routing be tried without an account.
An entrypoint is interpreted when the sandbox starts, in a time where only sleep takes any; an image starts with
entrypoint.sh of the workspace, if it is there.
There are no programs but those of the shell itself (cat, env, ls, mkdir, sleep, tee and the like) and two for its pretended network (send, lookup): no git, no package manager.`

// Describe implements extensions.Extension.
func (e extension) Describe() extensions.Descriptor {
	quota, vcpu, memory := int64(vendor.DefaultQuota), int64(vendor.MaxMilliCPU/1000), int64(vendor.MaxMemoryMB)
	d := extensions.Descriptor{
		Handler:   Handler,
		Title:     "Stub vendor (test double)",
		Doc:       doc,
		Places:    []extensions.Place{extensions.PlaceAccount},
		NamedOnly: true,
		Config: []extensions.Field{
			{Name: fieldDir, Type: extensions.FieldString, Doc: "The vendor's folder; the default is one of the user's state folder."},
			{Name: fieldRegion, Type: extensions.FieldString, Enum: regions, Doc: "Where sandboxes are made unless a profile says otherwise."},
			{Name: fieldPlan, Type: extensions.FieldString, Enum: []string{planFull, planTrial},
				Doc: "The vendor's plan; `trial` ends a sandbox after " + vendor.TrialTTL.String() +
					", keeps no snapshots, moves a deadline only later and stops that of a paused one. The default is `full`."},
		},
		Options: []extensions.Field{
			{Name: fieldRegion, Type: extensions.FieldString, Enum: regions, Doc: "Where this sandbox is made."},
		},
		Credentials: []extensions.CredentialField{
			{Name: credentialKey, Env: "SAAS_STUB_API_KEY", Doc: "Any value is accepted; needed only where the vendor's script asks for one."},
		},
		Powers: []extensions.Power{extensions.PowerExec, extensions.PowerLogs, extensions.PowerFiles, extensions.PowerURL, extensions.PowerSnapshot,
			extensions.PowerReadSnapshot, extensions.PowerFork, extensions.PowerPause, extensions.PowerExtend, extensions.PowerUsage,
			extensions.PowerCapacity, extensions.PowerEstimate, extensions.PowerGenerationSet},
		Find: extensions.Find{Strength: extensions.FindStrong},
		Snapshots: extensions.Snapshots{Kinds: []extensions.SnapshotKind{extensions.SnapshotMetadata},
			Find: extensions.Find{Strength: extensions.FindStrong}, Portable: []extensions.SnapshotKind{extensions.SnapshotMetadata}},
		List: extensions.List{Freshness: extensions.ListStrong},
		Capabilities: extensions.Capabilities{
			TransportModel:      extensions.TransportDialIn,
			FsSnapshot:          true,
			PauseResume:         true,
			PausedExpiry:        extensions.ExpiryNative,
			CapacityQuery:       true,
			MaxConcurrent:       &quota,
			MaxSessionDuration:  vendor.MaxTTL,
			Regions:             regions,
			OS:                  []string{"linux"},
			Arch:                []string{"amd64", "arm64"},
			IdleCostModel:       extensions.IdleMetered,
			BillingModel:        extensions.BillingWallClock,
			MaxVCPU:             &vcpu,
			MaxMemoryMB:         &memory,
			CustomNetworkPolicy: true,
			EgressDefault:       extensions.NetworkDeny,
			Provides: extensions.Provides{RuntimeKinds: []string{"workarea", "vendor-hosted"},
				RequirementKinds: []string{"long-running", "workarea"}},
			IsolationLevels:   []extensions.Isolation{extensions.IsolationContainer, extensions.IsolationMicroVM},
			PricingModel:      extensions.PricingMetered,
			Egress:            extensions.EgressDomain,
			CIDRPorts:         extensions.PortsAny,
			DomainPorts:       extensions.PortsAny,
			DNS:               extensions.DNSClosed,
			Ingress:           extensions.IngressClosed,
			Expiry:            extensions.ExpiryNative,
			MaxTTL:            vendor.MaxTTL,
			ExtendTTL:         extensions.ExtendBoth,
			IdleReap:          extensions.IdleReapNative,
			ReadOnlyWorkspace: true,
			Limits:            []extensions.Limit{extensions.LimitCPU, extensions.LimitMemory},
			SecretsAs:         slices.Clone(extensions.SecretDeliveries),
			Entrypoints:       slices.Clone(extensions.EntrypointModes),
		},
	}
	if e.eventual {
		d.Handler = EventualHandler
		d.Title = "Stub vendor, eventually consistent (test double)"
		d.Find = extensions.Find{Strength: extensions.FindEventual, Settle: Settle, Claim: Claim}
		d.Snapshots.Find = extensions.Find{Strength: extensions.FindEventual, Settle: Settle}
		d.List = extensions.List{Freshness: extensions.ListEventual, Lag: Settle}
		d.Config = append(d.Config, extensions.Field{Name: fieldLag, Type: extensions.FieldDuration,
			Doc: "How long look-ups miss what is new, at most " + Settle.String() + "; the default is " + Lag.String() + "."})
	}
	return d
}

// The vendor's plans.
const (
	planFull  = "full"
	planTrial = "trial"
)

// Declare implements extensions.Declarer: a plan's limits hold for its binding alone.
func (e extension) Declare(values map[string]any) (extensions.Declaration, error) {
	if extensions.Text(values, fieldPlan) != planTrial {
		return extensions.Declaration{}, nil
	}
	longest, later, paused := vendor.TrialTTL, extensions.ExtendLater, extensions.ExpirySweep
	return extensions.Declaration{Narrowing: extensions.Narrowing{MaxTTL: &longest, MaxSessionDuration: &longest, ExtendTTL: &later,
		PausedExpiry: &paused},
		Powers: slices.DeleteFunc(e.Describe().Powers, func(p extensions.Power) bool { return p == extensions.PowerSnapshot })}, nil
}
