package route

import (
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Origin is the place of an existing object: the sandbox to fork, or the snapshot to restore.
type Origin struct {
	Binding string
	Host    string // ref, or name; "" for an account, or this machine unnamed
	// Portable is the kind of a snapshot that other places of the same handler and architecture restore, too;
	// "" = it stays where it is. Arch is as Go names it; "" = unknown.
	Portable      extensions.SnapshotKind
	Handler, Arch string
}

func tellOrigin(j *judge, c *Candidate) (string, string) {
	what, command := "the sandbox to fork", "sandbox"
	if j.Spec.FromSnapshot != nil {
		what, command = "the snapshot", "snapshot"
	}
	help := "create the new sandbox where the " + command + " is"
	if j.Origin == nil {
		if s := j.Spec.FromSnapshot; s != nil && s.Handle.Extension != "" && s.Handle.Extension != c.Handler {
			return what + " was created by " + s.Handle.Extension, help
		}
		return "", "" // its place is not known yet
	}
	away := j.Origin.away(c)
	if away == "" {
		return "", ""
	}
	archs := c.Capabilities.Arch
	switch {
	case !j.Origin.reaches(c):
		return what + away, help
	case j.Origin.Arch != "" && len(archs) > 0 && !slices.Contains(archs, "*") && !slices.Contains(archs, j.Origin.Arch):
		return what + away + ", which is " + j.Origin.Arch + ", and this place is " + strings.Join(archs, ", "),
			help + ", or at a place of its architecture"
	}
	return "", ""
}

// Holds reports whether the place of c is the origin.
func (o *Origin) Holds(c *Candidate) bool { return o.away(c) == "" }

// reaches reports whether the snapshot restores at places like that of c.
func (o *Origin) reaches(c *Candidate) bool {
	return o.Portable != "" && o.Handler == c.Handler && slices.Contains(c.Portable, o.Portable)
}

// away says where the object lives instead of at the place of c; "" = there.
func (o *Origin) away(c *Candidate) string {
	if o.Binding != "" && o.Binding != c.Binding {
		return " lives in " + o.Binding
	}
	host, remote := o.host()
	switch { // this machine is one place, whatever a host calls it
	case c.Place == extensions.PlaceHost && host == "":
		return " lives on this machine"
	case c.Place == extensions.PlaceHost && host != c.HostName(), c.Place == extensions.PlaceMachine && remote:
		return " lives on host " + host
	}
	return ""
}

// host returns the name, and whether it is known to be another machine's.
func (o *Origin) host() (name string, remote bool) {
	if h, err := extensions.ParseHostRef(o.Host); err == nil {
		return h.Name, !h.Local
	}
	return o.Host, false
}
