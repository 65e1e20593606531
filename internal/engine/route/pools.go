package route

import (
	"cmp"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Auth modes that a request may pin. Both use a login session on this machine, which exists nowhere else.
const (
	AuthModeLocal       = "local"
	AuthModeHostSession = "host-session"
)

// AuthModes lists the values of Policy.AuthMode.
var AuthModes = []string{AuthModeLocal, AuthModeHostSession}

// Room is how full a place is. nil is unknown, which is neither empty nor unlimited.
type Room struct {
	// Max is the limit of the binding's owner or of the vendor. A host's is in Host.Capacity.
	Max *int64
	// Live and HostLive count the account's sandboxes at the binding and on the host. A plan does not count.
	Live, HostLive *int64
	// PlaceMax and PlaceUsed are the place's own limit and count, of everybody's sandboxes. Only a create asks.
	PlaceMax, PlaceUsed *int64
}

// whose is the origin of a room limit.
type whose int

const (
	ofHost    whose = iota // set by its owner
	ofBinding              // set by its owner, or declared by the extension
	ofPlace                // reported by the place
)

// roomLimit is one limit on the number of sandboxes at a place.
type roomLimit struct {
	most  int64
	live  *int64 // nil = not counted
	whose whose
}

// roomLimits returns the limits of c; the first n are known.
func (c *Candidate) roomLimits() (all [3]roomLimit, n int) {
	if c.Host != nil && c.Host.Capacity != nil && c.Host.Capacity.MaxSandboxes > 0 {
		all[n] = roomLimit{c.Host.Capacity.MaxSandboxes, c.Room.HostLive, ofHost}
		n++
	}
	if c.Room.Max != nil {
		all[n] = roomLimit{*c.Room.Max, c.Room.Live, ofBinding}
		n++
	}
	if c.Room.PlaceMax != nil {
		all[n] = roomLimit{*c.Room.PlaceMax, c.Room.PlaceUsed, ofPlace}
		n++
	}
	return all, n
}

// full reports whether more than 90 % are in use: the rest is for uncounted creates under way.
func (x roomLimit) full() bool {
	return x.most <= 0 || x.live != nil && *x.live > x.most/10*9+x.most%10*9/10
}

func passCapacity(_ *judge, c *Candidate) bool {
	all, n := c.roomLimits()
	for _, x := range all[:n] {
		if x.full() {
			return false
		}
	}
	return true
}

func tellCapacity(_ *judge, c *Candidate) (string, string) {
	all, n := c.roomLimits()
	x := all[0]
	for _, x = range all[:n] {
		if x.full() {
			break
		}
	}
	name, raise := c.Binding, "raise capacity.max_sandboxes of "+c.Binding
	switch x.whose {
	case ofHost:
		name, raise = "host "+c.Host.Name, "raise capacity.max_sandboxes of host "+c.Host.Name
	case ofPlace:
		name, raise = c.ID(), "ask to raise the limit of "+c.ID()
	}
	switch {
	case x.most <= 0:
		return name + " takes no sandboxes: its capacity is 0", raise
	case *x.live >= x.most:
		return fmt.Sprintf("it is full: it has %d of at most %d sandboxes", *x.live, x.most),
			"destroy one, " + raise + " if it has room for more, or add another place"
	}
	return fmt.Sprintf("it is nearly full: it has %d of at most %d sandboxes, more than 90 %%", *x.live, x.most),
		"destroy some, " + raise + " if it has room for more, or add another place"
}

// bounded is 0 if the place's capacity is known. Among equals such a place comes first, because unknown is not unlimited.
func (c *Candidate) bounded() int64 {
	if _, n := c.roomLimits(); n > 0 {
		return 0
	}
	return 1
}

// passAuthMode keeps a login session on its own machine.
func passAuthMode(_ *judge, c *Candidate) bool { return c.Place == extensions.PlaceMachine }

func tellAuthMode(j *judge, c *Candidate) (string, string) {
	what := "an account of a vendor"
	if c.Place == extensions.PlaceHost {
		what = "another machine"
	}
	return "the profile pins auth_mode " + j.Policy.AuthMode + ", a session on this machine, and this is " + what,
		"drop route.constraints.auth_mode, or use a place on this machine, such as ext.local"
}

// PaidAs returns the payer of a metered place: the request's, else the binding's; "" if neither states one, which is
// platform credit once there was any.
func (c *Candidate) PaidAs(requested string) string { return cmp.Or(requested, c.Billing) }

// passBilling: the owner pays a binding with their own key, the platform one with its key.
func passBilling(j *judge, c *Candidate) bool {
	return c.Billing == "" || c.Billing == c.PaidAs(j.Billing) || c.Capabilities.SelfHosted()
}

func tellBilling(j *judge, c *Candidate) (string, string) {
	return "its billing is " + c.Billing + ", but the request asks for " + j.Billing, `set billing = "` + c.Billing + `", or remove it`
}
