package composessh

import (
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// record is what a host's folder says about one sandbox.
type record struct {
	values map[string]string // the manifest's; "lease.until", "left"
	busy   string            // the operation in progress; "" = none
}

// parseRecords reads what sh/look.sh prints. A host's text is not trusted: it skips what does not fit.
func parseRecords(text string) map[extensions.ID]record {
	all := map[extensions.ID]record{}
	var id extensions.ID
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if rest, ok := strings.CutPrefix(line, "box "); ok {
			var err error
			if id, err = extensions.ParseID(rest); err == nil {
				all[id] = record{values: map[string]string{}}
			}
			continue
		}
		r, ok := all[id]
		if !ok {
			continue
		}
		if rest, busy := strings.CutPrefix(line, "busy "); busy {
			r.busy = extensions.Clean(rest, 20)
			all[id] = r
			continue
		}
		if k, v, ok := strings.Cut(line, "="); ok {
			r.values[k] = v
		}
	}
	return all
}

// deadline returns when the sandbox ends as its owner set it: from the lease, or from the copy in the
// manifest.
func (r record) deadline() time.Time {
	until := r.values["lease.until"]
	if words := strings.Fields(r.values["deadline"]); until == "" && len(words) == 5 {
		until = words[4]
	}
	t, _ := time.Parse(time.RFC3339Nano, until)
	return t
}

// paused reports a sandbox that is paused, or about to be.
func (r record) paused() bool { return r.values["paused"] == "1" }

// idled reports a sandbox that its host ended, or is about to end, because it was idle, and tells o.
func (r record) idled(o *extensions.Observation) bool {
	since, found, ok := strings.Cut(r.values["idled"], " ")
	if ok {
		o.Idle, o.EndedAt = true, fromMillis(found)
		o.Reason = "it was idle since " + fromMillis(since).Format(time.RFC3339)
	}
	return ok
}

// container is one row of an answer.
type container struct {
	id         extensions.ID
	account    string
	generation string
	service    string // "" = not part of the stack
	ports      string
	status     string
	name       string   // Docker's id, which no other container ever gets
	networks   []string // Docker's names
	health     string   // the last output of its health check, if unhealthy
	exit       exit     // of an entrypoint that has ended
}

// parseContainers reads an answer's rows and health checks.
func parseContainers(a answer) map[extensions.ID][]container {
	health, exits := parseHealth(a.Health), parseExits(a.Exits)
	all := map[extensions.ID][]container{}
	for _, r := range a.Containers {
		if len(r) < 8 {
			continue
		}
		id, err := extensions.ParseID(r[0])
		if err != nil {
			continue
		}
		networks := strings.FieldsFunc(r[7], func(c rune) bool { return c == ',' })
		all[id] = append(all[id], container{id, r[1], r[2], r[3], r[4], r[5], r[6], networks, health[r[6]], exits[r[6]]})
	}
	return all
}

// up and exited0 read Docker's text for a container's state.
func (c container) up() bool      { return strings.HasPrefix(c.status, "Up ") }
func (c container) exited0() bool { return strings.HasPrefix(c.status, "Exited (0)") }
func (c container) ended() bool {
	return strings.HasPrefix(c.status, "Exited (") || strings.HasPrefix(c.status, "Dead")
}
func (c container) paused() bool    { return c.up() && strings.HasSuffix(c.status, "(Paused)") }
func (c container) unhealthy() bool { return c.up() && strings.HasSuffix(c.status, "(unhealthy)") }
