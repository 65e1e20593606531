package composessh

import (
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// record is what a host's folder says of one sandbox.
type record struct {
	values map[string]string // of the manifest; "lease.until", "left"
	busy   string            // the operation that works on it; "" = none
}

// parseRecords reads what sh/look.sh prints. Text of a host is not trusted:
// what does not fit is passed over.
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

// deadline is when the sandbox ends as its owner told it: of the lease, or of the
// copy in the manifest.
func (r record) deadline() time.Time {
	until := r.values["lease.until"]
	if words := strings.Fields(r.values["deadline"]); until == "" && len(words) == 5 {
		until = words[4]
	}
	t, _ := time.Parse(time.RFC3339Nano, until)
	return t
}

// container is one row of an answer.
type container struct {
	id         extensions.ID
	account    string
	generation string
	service    string // "" = none of the stack's
	ports      string
	status     string
	name       string   // Docker's id, which no other container ever has
	networks   []string // Docker's names
	health     string   // what its health check said last, where it is unhealthy
}

// parseContainers reads the rows and the health checks of an answer.
func parseContainers(a answer) map[extensions.ID][]container {
	health := parseHealth(a.Health)
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
		all[id] = append(all[id], container{id, r[1], r[2], r[3], r[4], r[5], r[6], networks, health[r[6]]})
	}
	return all
}

// up and exited0 read Docker's words for a container's state.
func (c container) up() bool      { return strings.HasPrefix(c.status, "Up ") }
func (c container) exited0() bool { return strings.HasPrefix(c.status, "Exited (0)") }
func (c container) ended() bool {
	return strings.HasPrefix(c.status, "Exited (") || strings.HasPrefix(c.status, "Dead")
}
func (c container) paused() bool    { return c.up() && strings.HasSuffix(c.status, "(Paused)") }
func (c container) unhealthy() bool { return c.up() && strings.HasSuffix(c.status, "(unhealthy)") }
