package compose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxNoted bounds the services that one note names.
const maxNoted = 10

// Notes lists, for people, what active services ask for and do not get although no rule refuses it: restart
// policies, and published ports. shut says that the ports stay shut because the network is denied, not by the
// profile's own choice.
func (p *Project) Notes(shut bool) []string {
	var restarts, ports []string
	for _, name := range sortedKeys(p.Compose.Services) {
		s := p.Compose.Services[name]
		if comesBack(s) {
			restarts = append(restarts, name)
		}
		if numbers := targetsOf(s.Ports); shut && p.Publish == PublishNone && len(numbers) > 0 {
			ports = append(ports, fmt.Sprintf("%s (%s)", name, strings.Join(numbers, ", ")))
		}
	}
	var notes []string
	if len(restarts) > 0 {
		notes = append(notes, "restart policies of "+some(restarts)+" are dropped: a service that ends stays down, and nothing restarts after "+
			"a reboot, when nothing would enforce the deadline")
	}
	if len(ports) > 0 {
		notes = append(notes, "ports of "+some(ports)+" are not published: the network is denied by default. `sandboxer sandbox forward` "+
			"reaches them. "+
			"On a host with allow_firewall, options.ext.compose-ssh.publish: \"loopback\" publishes them; set \"none\" to silence this")
	}
	return notes
}

// comesBack reports whether a service asks to be restarted when it ends.
func comesBack(s types.ServiceConfig) bool {
	if s.Restart != "" {
		return s.Restart != types.RestartPolicyNo
	}
	return s.Deploy != nil && s.Deploy.RestartPolicy != nil && s.Deploy.RestartPolicy.Condition != "none"
}

func targetsOf(ports []types.ServicePortConfig) []string {
	var out []string
	for _, c := range ports {
		n := fmt.Sprint(c.Target)
		if c.Protocol != "" && c.Protocol != "tcp" {
			n += "/" + c.Protocol
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// some shortens a list for a message.
func some(all []string) string {
	shown := all[:min(len(all), maxNoted)]
	text := extensions.Clean(strings.Join(shown, ", "), 600)
	if more := len(all) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
