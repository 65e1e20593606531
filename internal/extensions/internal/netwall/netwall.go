// Package netwall is the policy of walls around sandboxes on machines that we prepare, and its proof: which rules
// can be enforced, the firewall of one sandbox, the configuration of a proxy that lets names through, and the
// attempts from inside that default deny is proved by. How a place runs any of it is the place's.
//
//	tries.sh   wall_perl, wall_shell: the attempts; wall_holds: what their output means
//	rules.sh   firewall_rules, firewall_rules6: the rules; firewall_job: puts, removes or shows them as root
package netwall

import (
	"embed"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

//go:embed sh/*.sh
var shellFiles embed.FS

// Scripts are the programs of this package.
var Scripts = &shtext.Files{FS: shellFiles}
