package vendor

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Destination is what an object may reach where its network is denied.
type Destination struct {
	Network string `json:"network,omitempty"` // CIDR
	Name    string `json:"name,omitempty"`    // a leading "*." is any name below it
	Port    int    `json:"port"`              // 0 = every port
}

func (d Destination) names(host string) bool {
	if below, ok := strings.CutPrefix(d.Name, "*"); ok {
		return strings.HasSuffix(host, below)
	}
	if d.Name != "" {
		return host == d.Name
	}
	network, err := netip.ParsePrefix(d.Network)
	address, err2 := netip.ParseAddr(host)
	return err == nil && err2 == nil && network.Contains(address)
}

// reaches reports whether what an object sends arrives. Port 0 is a name that is looked up.
func (o *Object) reaches(host string, port int) bool {
	return o.Open || slices.ContainsFunc(o.Allow, func(d Destination) bool {
		return d.names(host) && (port == 0 || d.Port == 0 || d.Port == port)
	})
}

// mostHeard bounds the words that the service remembers.
const mostHeard = 200

// hear notes what reached the pretended world: words, and names that were looked up.
func (v *Vendor) hear(ctx context.Context, word string) error {
	return v.transact(ctx, func(st *state) error {
		st.Heard = append(st.Heard, word)
		st.Heard = st.Heard[max(0, len(st.Heard)-mostHeard):]
		return nil
	})
}

// runSend is "send HOST PORT WORD".
func runSend(inv *invocation) int {
	if len(inv.args) != 3 {
		return inv.fail(2, "send: want a host, a port and a word")
	}
	port, err := strconv.Atoi(inv.args[1])
	if err != nil || port < 1 || port > 65535 {
		return inv.fail(2, "send: %q is not a port", inv.args[1])
	}
	return inv.sendTo(inv.args[0], port, inv.args[2])
}

// runLookup is "lookup NAME".
func runLookup(inv *invocation) int {
	if len(inv.args) != 1 {
		return inv.fail(2, "lookup: want a name")
	}
	return inv.sendTo(inv.args[0], 0, inv.args[0])
}

func (inv *invocation) sendTo(host string, port int, word string) int {
	if !inv.m.obj.reaches(host, port) {
		return inv.fail(1, "%s: the network is denied", host)
	}
	if err := inv.m.hear(inv.ctx, word); err != nil {
		return inv.fail(1, "%s: not reached", host)
	}
	return 0
}
