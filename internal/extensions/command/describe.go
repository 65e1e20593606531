package command

import (
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const doc = `Runs sandboxes through your own program, in any language, that a binding of your catalog names. The capabilities here are
the most that a program can declare. The binding's manifest says what it does, and ` + "`sandboxer extension test`" + ` checks that.

- **Where it runs**: the program runs on the machine that runs sandboxer. It decides where its sandboxes run.
- **Needs**: a Unix, the program's path in the provider's ` + "`allowed_commands`" + ` (or ` + "`$SANDBOXER_ALLOWED_COMMANDS`" + `), and a
  file that only root and you can write. Commands need /bin/sh inside.
- **Expiry**: as declared: the program's place ends a sandbox itself, or ` + "`sweep`" + ` does.
- **Leaves behind**: what the program leaves.

No plan runs the program. It runs in an empty environment, in its own process group, for a limited time and with limited output. If it is
killed or its answer cannot be understood after it may have changed something, the outcome counts as unknown, and is looked up.`

var powers = []extensions.Power{extensions.PowerExec, extensions.PowerFiles, extensions.PowerExtend, extensions.PowerUsage}

// Describe implements extensions.Extension: the most that a program can declare.
func (extension) Describe() extensions.Descriptor {
	return extensions.Descriptor{
		Handler: Handler,
		Title:   "A program",
		Doc:     doc,
		Places:  []extensions.Place{extensions.PlaceAccount},
		Config:  configFields,
		Options: optionFields,
		Credentials: []extensions.CredentialField{{Name: fieldToken,
			Doc: "Credential that the program uses elsewhere. It gets it on stdin."}},
		Powers: slices.Clone(powers),
		Find:   extensions.Find{Strength: extensions.FindStrong},
		List:   extensions.List{Freshness: extensions.ListStrong},
		Capabilities: extensions.Capabilities{
			TransportModel:      extensions.TransportDialIn,
			Regions:             []string{"*"},
			OS:                  []string{"*"},
			Arch:                []string{"*"},
			IdleCostModel:       extensions.IdleMetered,
			BillingModel:        extensions.BillingWallClock,
			CustomNetworkPolicy: true,
			EgressDefault:       extensions.NetworkAllow,
			Provides: extensions.Provides{RuntimeKinds: []string{"native", extensions.RequireWorkarea}, RequirementKinds: []string{
				extensions.RequireLongRunning, extensions.RequireNetworkEgress}}.
				With(extensions.Provides{RequirementKinds: extensions.WorkspaceKinds}),
			IsolationLevels: slices.Clone(extensions.IsolationLevels),
			PricingModel:    extensions.PricingMetered,
			Egress:          extensions.EgressDomain,
			CIDRPorts:       extensions.PortsAny,
			DomainPorts:     extensions.PortsAny,
			DNS:             extensions.DNSClosed,
			Ingress:         extensions.IngressClosed,
			Expiry:          extensions.ExpiryNative,
			ExtendTTL:       extensions.ExtendBoth,
			IdleReap:        extensions.IdleReapNone,
			Limits:          slices.Clone(extensions.Limits),
			Entrypoints:     []extensions.EntrypointMode{extensions.EntrypointIdle},
			SecretsAs:       []extensions.SecretDelivery{extensions.SecretsEnv},
		},
	}
}

// Declare implements extensions.Declarer: what the binding's manifest says.
func (x extension) Declare(values map[string]any) (extensions.Declaration, error) {
	m, err := parseManifest(values[fieldManifest])
	if err != nil {
		return extensions.Declaration{}, err
	}
	d := m.declaration()
	if _, err := x.Describe().Narrow(d); err != nil {
		return d, invalidManifest("%w", err)
	}
	return d, nil
}
