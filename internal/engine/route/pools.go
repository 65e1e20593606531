package route

import (
	"cmp"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What a request may pin as its way to authenticate. Both use a session that
// somebody is logged in to, which exists on machines of the owner alone.
const (
	AuthModeLocal       = "local"
	AuthModeHostSession = "host-session"
)

// AuthModes lists what Policy.AuthMode may be.
var AuthModes = []string{AuthModeLocal, AuthModeHostSession}

// Room is what is known of how full a place is; nil is unknown, which is not
// the same as empty or without end.
type Room struct {
	// Max is how many sandboxes the binding takes, by its owner's word or the
	// vendor's. A host's is in Host.Capacity.
	Max *int64
	// Live and HostLive count the account's sandboxes at the binding and on
	// the host. A plan does not count.
	Live, HostLive *int64
}

// ceilings are what bounds c: the binding's limit and its host's.
func (c *Candidate) ceilings() (binding, host int64, bound, hostBound bool) {
	if c.Room.Max != nil {
		binding, bound = *c.Room.Max, true
	}
	if c.Host != nil && c.Host.Capacity != nil && c.Host.Capacity.MaxSandboxes > 0 {
		host, hostBound = c.Host.Capacity.MaxSandboxes, true
	}
	return binding, host, bound, hostBound
}

// nearlyFull reports more than 90 % of a ceiling in use: the rest is left for
// what is under way and was not counted yet.
func nearlyFull(live *int64, ceiling int64) bool {
	return ceiling <= 0 || live != nil && *live > ceiling/10*9+ceiling%10*9/10
}

func passCapacity(_ *judge, c *Candidate) bool {
	binding, host, bound, hostBound := c.ceilings()
	return !(bound && nearlyFull(c.Room.Live, binding)) && !(hostBound && nearlyFull(c.Room.HostLive, host))
}

func tellCapacity(_ *judge, c *Candidate) (string, string) {
	binding, host, _, hostBound := c.ceilings()
	live, ceiling, whose := c.Room.Live, binding, c.Binding
	if hostBound && nearlyFull(c.Room.HostLive, host) {
		live, ceiling, whose = c.Room.HostLive, host, "host "+c.Host.Name
	}
	switch {
	case ceiling <= 0:
		return whose + " takes no sandboxes: its capacity is 0", "raise capacity.max_sandboxes of " + whose
	case *live >= ceiling:
		return fmt.Sprintf("it is full: %d of at most %d sandboxes are there", *live, ceiling),
			"destroy one, raise capacity.max_sandboxes of " + whose + " if it holds more, or add another place"
	}
	return fmt.Sprintf("it is nearly full: %d of at most %d sandboxes are there, more than 90 %%", *live, ceiling),
		"destroy some, raise capacity.max_sandboxes of " + whose + " if it holds more, or add another place"
}

// bounded is 0 for a place whose capacity is known: between equals it comes
// first, because unknown is not unlimited.
func (c *Candidate) bounded() int64 {
	if _, _, bound, hostBound := c.ceilings(); bound || hostBound {
		return 0
	}
	return 1
}

// passAuthMode keeps a logged-in session on machines of its owner.
func passAuthMode(_ *judge, c *Candidate) bool {
	return c.Place == extensions.PlaceMachine || c.Place == extensions.PlaceHost
}

func tellAuthMode(j *judge, _ *Candidate) (string, string) {
	return "the profile pins auth_mode " + j.Policy.AuthMode + ", a session on a machine of yours, and this is an account of a vendor",
		"drop route.constraints.auth_mode, or use a place that is this machine or a host of yours"
}

// PaidAs is who pays for a metered place: as the request says, where it says
// nothing as the binding does; "" where neither does, which is platform credit
// once there was any.
func (c *Candidate) PaidAs(requested string) string { return cmp.Or(requested, c.Billing) }

// passBilling: a binding with a key of its own is paid by its owner, and one
// with the platform's by the platform.
func passBilling(j *judge, c *Candidate) bool {
	return c.Billing == "" || c.Billing == c.PaidAs(j.Billing) || c.selfHosted()
}

func tellBilling(j *judge, c *Candidate) (string, string) {
	return "it is paid as " + c.Billing + ", and the request asks for " + j.Billing, `set billing = "` + c.Billing + `", or leave it out`
}
