package route

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Reach is the profile's demand on the way to its host; nil = any way. Names are for people: routing compares the jump host
// and the identity themselves, so a host with the same arguments matches too.
type Reach struct {
	TunnelName, IdentityName string
	Tunnel                   *extensions.SSH
	Identity                 *extensions.SSHIdentity
}

func (r Reach) asked() bool { return r.Tunnel != nil || r.Identity != nil }

func (r Reach) through(s *extensions.SSH) bool {
	return r.Tunnel == nil || len(s.Jump) == 1 && reflect.DeepEqual(s.Jump[0], *r.Tunnel)
}

func (r Reach) as(s *extensions.SSH) bool {
	return r.Identity == nil || reflect.DeepEqual(s.Identity, r.Identity)
}

// passReach leaves a place without its host to the rule about that.
func passReach(j *judge, c *Candidate) bool {
	if c.Place == extensions.PlaceHost && c.Host == nil {
		return true
	}
	return c.Host != nil && c.Host.SSH != nil && j.Reach.through(c.Host.SSH) && j.Reach.as(c.Host.SSH)
}

func tellReach(j *judge, c *Candidate) (string, string) {
	r := j.Reach
	if c.Host == nil || c.Host.SSH == nil {
		return "the profile asks for " + r.words() + ", and this is not a host over SSH",
			"remove reachability from the profile, or use a host over SSH"
	}
	if s := c.Host.SSH; !r.through(s) {
		return "the profile asks for the tunnel " + r.TunnelName + ", and the host is reached " + way(s),
			"set ssh.tunnel = " + strconv.Quote(r.TunnelName) + " of the sandboxer_host " + c.Host.Name + ", or change reachability.tunnel"
	}
	return "the profile asks for the identity " + r.IdentityName + ", and the host has another one",
		"set ssh.identity = { name = " + strconv.Quote(r.IdentityName) + " } of the sandboxer_host " + c.Host.Name +
			", or change reachability.identity"
}

func (r Reach) words() string {
	var out []string
	if r.Tunnel != nil {
		out = append(out, "the tunnel "+r.TunnelName)
	}
	if r.Identity != nil {
		out = append(out, "the identity "+r.IdentityName)
	}
	return strings.Join(out, " and ")
}

// way describes the way to a host.
func way(s *extensions.SSH) string {
	if len(s.Jump) == 0 {
		return "without a jump host"
	}
	hops := make([]string, len(s.Jump))
	for i, h := range s.Jump {
		hops[i] = h.Address + h.Alias
		if h.Port != 0 {
			hops[i] += ":" + strconv.FormatInt(h.Port, 10)
		}
	}
	return "through " + extensions.Clean(strings.Join(hops, ", then "), 200)
}
