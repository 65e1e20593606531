package route

import (
	"cmp"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What a request may pin as its way to authenticate. Both use a session that
// somebody is logged in to on this machine, and no other has it.
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
	// PlaceMax and PlaceUsed are what the place itself told: its limit, and what
	// is there, whoever made it. Only a create asks.
	PlaceMax, PlaceUsed *int64
}

// whose ceiling it is.
type whose int

const (
	ofHost    whose = iota // its owner's word
	ofBinding              // its owner's word, or what the extension declares
	ofPlace                // what the place told
)

// ceiling is one bound on how many sandboxes may be at a place.
type ceiling struct {
	most  int64
	live  *int64 // nil = not counted
	whose whose
}

// ceilings are what bounds c; the first n are known.
func (c *Candidate) ceilings() (all [3]ceiling, n int) {
	if c.Host != nil && c.Host.Capacity != nil && c.Host.Capacity.MaxSandboxes > 0 {
		all[n] = ceiling{c.Host.Capacity.MaxSandboxes, c.Room.HostLive, ofHost}
		n++
	}
	if c.Room.Max != nil {
		all[n] = ceiling{*c.Room.Max, c.Room.Live, ofBinding}
		n++
	}
	if c.Room.PlaceMax != nil {
		all[n] = ceiling{*c.Room.PlaceMax, c.Room.PlaceUsed, ofPlace}
		n++
	}
	return all, n
}

// full reports more than 90 % of a ceiling in use: the rest is left for what is
// under way and was not counted yet.
func (x ceiling) full() bool {
	return x.most <= 0 || x.live != nil && *x.live > x.most/10*9+x.most%10*9/10
}

func passCapacity(_ *judge, c *Candidate) bool {
	all, n := c.ceilings()
	for _, x := range all[:n] {
		if x.full() {
			return false
		}
	}
	return true
}

func tellCapacity(_ *judge, c *Candidate) (string, string) {
	all, n := c.ceilings()
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
		name, raise = c.ID(), "have the limit of "+c.ID()+" raised"
	}
	switch {
	case x.most <= 0:
		return name + " takes no sandboxes: its capacity is 0", raise
	case *x.live >= x.most:
		return fmt.Sprintf("it is full: %d of at most %d sandboxes are there", *x.live, x.most),
			"destroy one, " + raise + " if it holds more, or add another place"
	}
	return fmt.Sprintf("it is nearly full: %d of at most %d sandboxes are there, more than 90 %%", *x.live, x.most),
		"destroy some, " + raise + " if it holds more, or add another place"
}

// bounded is 0 for a place whose capacity is known: between equals it comes
// first, because unknown is not unlimited.
func (c *Candidate) bounded() int64 {
	if _, n := c.ceilings(); n > 0 {
		return 0
	}
	return 1
}

// passAuthMode keeps a logged-in session on the machine that has it.
func passAuthMode(_ *judge, c *Candidate) bool { return c.Place == extensions.PlaceMachine }

func tellAuthMode(j *judge, c *Candidate) (string, string) {
	what := "an account of a vendor"
	if c.Place == extensions.PlaceHost {
		what = "another machine"
	}
	return "the profile pins auth_mode " + j.Policy.AuthMode + ", a session on this machine, and this is " + what,
		"drop route.constraints.auth_mode, or use a place on this machine, such as ext.local"
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
