package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/route"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Candidates pairs each binding of the catalog with the places that it could use, including those that
// cannot fit, since their refusal is worth showing. insisted says that the request itself names the hosts.
func Candidates(cat *catalog.Catalog, hosts []extensions.Host, insisted bool) []route.Candidate {
	var out []route.Candidate
	for i, b := range cat.Bindings {
		for _, h := range hostsFor(b, hosts, insisted) {
			out = append(out, Candidate(b, h, i))
		}
	}
	return out
}

// hostsFor returns the places of a binding; nil stands for an account, or for this machine without a name.
func hostsFor(b catalog.Binding, hosts []extensions.Host, insisted bool) []*extensions.Host {
	if b.Descriptor.RunsAt(extensions.PlaceAccount) || len(hosts) == 0 {
		return []*extensions.Host{nil}
	}
	var out []*extensions.Host
	for _, h := range hosts {
		out = append(out, &h)
	}
	if b.Descriptor.RunsAt(extensions.PlaceMachine) && !insisted &&
		!slices.ContainsFunc(hosts, func(h extensions.Host) bool { return h.Local }) {
		out = append(out, nil)
	}
	return out
}

// Candidate returns a binding at one place; index is its position in the catalog.
func Candidate(b catalog.Binding, h *extensions.Host, index int) route.Candidate {
	at, fits := b.Descriptor.PlaceOf(h)
	c := route.Candidate{
		Binding: b.ID, Title: b.Title, Handler: b.Handler, Place: at, Host: h, Native: b.Descriptor.Native && at == extensions.PlaceMachine,
		Capabilities: b.Capabilities, Provides: b.Provides, Powers: b.Descriptor.Powers, Find: b.Descriptor.Find,
		Portable: b.Descriptor.Snapshots.Portable,
		Options:  b.Descriptor.Options, Region: b.Region, Priority: b.Priority, Index: index,
		NamedOnly: b.Descriptor.NamedOnly, Billing: b.Billing,
	}
	refuse := func(reason, help string) {
		c.Unavailable = &route.Unavailable{Rule: route.RuleHostUnfit, Reason: reason, Help: help}
	}
	switch {
	case fits:
	case h == nil:
		refuse("it needs a host, but the request has none", "register one with sandboxer_host and pass its ref in hosts")
	case at == extensions.PlaceMachine:
		refuse(fmt.Sprintf("it runs on this machine, but host %q is another machine", h.Name),
			"use a sandboxer_host with local = true, or a profile for SSH hosts")
	default:
		refuse(fmt.Sprintf("it needs an SSH host, and %q is this machine", h.Name), "give the host an ssh block")
	}
	return c
}

// Machine is an operating system and an architecture, as Go names them.
type Machine struct{ OS, Arch string }

// OnMachine returns the capabilities of a candidate on its machine, if its sandboxes are processes of this one.
func OnMachine(c *route.Candidate, here Machine) extensions.Capabilities {
	out := c.Capabilities
	if c.Native {
		out.OS, out.Arch = []string{here.OS}, []string{here.Arch}
	}
	return out
}

// judgePlace removes from c what its place cannot provide: what the host's arguments do not allow, and what
// a probe did not find there. again says that recorded facts removed something, so probing may restore it.
func judgePlace(c *route.Candidate, here Machine, s Seen, demands bool) (again bool) {
	c.Capabilities = OnMachine(c, here)
	if c.Unavailable != nil {
		return false
	}
	if s.Unseen != nil {
		c.Unavailable = &route.Unavailable{Rule: route.RuleHostUnfit,
			Reason: fmt.Sprintf("the request depends on the kind of machine, but %s could not be probed: %s", c.ID(),
				extensions.Clean(s.Unseen.Error(), 300)),
			Help: cmp.Or(extensions.RemedyOf(s.Unseen), "make it reachable")}
		return false
	}
	declared, facts := c.Capabilities, s.Facts
	if s.Narrowed != nil {
		c.Declared, c.Capabilities, c.Narrowed = &declared, s.Narrowed.Capabilities, s.Narrowed.Lost
	}
	if facts == nil {
		return false
	}
	if len(facts.Unfit) > 0 {
		c.Unavailable = unfit(c, facts.Unfit)
		return s.Recorded
	}
	c.Capabilities, c.Powers = facts.Narrow(c.Capabilities, c.Powers)
	declared.OS, declared.Arch = c.Capabilities.OS, c.Capabilities.Arch // no note would change what the machine is
	c.Declared, c.Narrowed = &declared, facts.Reasons(c.Narrowed)
	return s.Recorded && (len(c.Narrowed) > 0 || demands)
}

func unfit(c *route.Candidate, why []string) *route.Unavailable {
	u := &route.Unavailable{Rule: route.RuleHostUnfit,
		Reason: fmt.Sprintf("the last probe of account %s found that it cannot run sandboxes: %s", c.Binding, strings.Join(why, "; ")),
		Help:   "fix this at the vendor and run again"}
	if c.Host != nil {
		u.Reason = fmt.Sprintf("the last probe of host %q found that it cannot run sandboxes: %s", c.Host.Name, strings.Join(why, "; "))
		u.Help = fmt.Sprintf("fix this on the host and run again; `sandboxer host check %s` probes it", c.Host.Name)
	}
	return u
}

// judgeCredentials refuses a place without its credentials in a create. A plan, which may run without
// them, only reports it.
func judgeCredentials(c *route.Candidate, d extensions.Descriptor, s Seen, create bool) (told []notice.Notice) {
	if c.Unavailable != nil || len(s.Missing) == 0 {
		return nil
	}
	reason, help := CredentialsLacking(c.Binding, d, s.Missing)
	if create {
		c.Unavailable = &route.Unavailable{Rule: route.RuleCredentials, Reason: reason, Help: help}
		return nil
	}
	return []notice.Notice{{Summary: c.Binding + " cannot be used on this machine", Detail: reason + ": " + help}}
}

// CredentialsLacking says which credentials of a binding are missing, and how to set them; see
// [extensions.Descriptor.Pick].
func CredentialsLacking(binding string, d extensions.Descriptor, missing [][]extensions.CredentialField) (reason, help string) {
	var names, ways []string
	for _, fields := range missing {
		name, way := settingOf(binding, fields)
		names, ways = append(names, name), append(ways, way)
	}
	reason = fmt.Sprintf("its credential %s is not set", names[0])
	if all := d.Alternatives(); all != "" {
		reason = "its credentials are incomplete: it takes " + all
	} else if len(missing[0]) > 1 {
		reason = fmt.Sprintf("its credentials %s are not set", names[0])
	}
	return reason, strings.Join(ways, "; or ")
}

// settingOf names credentials and says how to set them.
func settingOf(binding string, fields []extensions.CredentialField) (names, how string) {
	var all, set []string
	for _, f := range fields {
		one := fmt.Sprintf("credentials[%q].%s in the provider block", binding, f.Name)
		if f.Env != "" {
			one += " or the environment variable " + f.Env
		}
		all, set = append(all, f.Name), append(set, one)
	}
	return strings.Join(all, ", "), "set " + strings.Join(set, ", and ")
}

// judgeHealth refuses, and reports, a place that recently did not answer.
func judgeHealth(c *route.Candidate, s Seen) (silent bool) {
	if c.Unavailable != nil || s.Silence == nil {
		return false
	}
	help := extensions.RemedyOf(s.Silence.Err)
	if help != "" {
		help += "; "
	}
	c.Unavailable = &route.Unavailable{Rule: route.RuleUnreachable,
		Reason: fmt.Sprintf("it could not be reached at %s: %s", s.Silence.At.UTC().Format(time.RFC3339),
			extensions.Clean(s.Silence.Err.Error(), 300)),
		Help: help + "sandboxer asks it again a minute later"}
	return true
}
