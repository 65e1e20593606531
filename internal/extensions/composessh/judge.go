package composessh

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// expectation is what a sandbox's record says about its containers.
type expectation struct {
	project string              // Compose's prefix of its network names
	walled  bool                // its network is denied, in any way
	breach  string              // what is wrong with its walls, "" = nothing
	long    []string            // services that must not end
	ran     []string            // services that ran when it was ready
	done    []string            // services that may end successfully
	made    []string            // its containers by Docker's id; empty if not recorded
	joins   map[string][]string // the networks of each service; nil if not recorded
	expect  int                 // number of containers
	running bool                // some service runs
	paused  bool                // all that runs is paused
	held    bool                // for a moment it is, while it is copied
}

func (r record) expectation(id extensions.ID) expectation {
	v := r.values
	s := expectation{
		project: string(id), walled: v["mode"] != string(compose.NetworkAllow), long: strings.Fields(v["long"]), ran: strings.Fields(v["ran"]),
		done: slices.Concat(strings.Fields(v["oneshot"]), strings.Fields(v["jobs"])), made: strings.Fields(v["containers"]),
		running: v["running"] != "0", paused: r.paused(), held: v["held"] != "", breach: extensions.Clean(v["walls"], 200),
	}
	s.expect, _ = strconv.Atoi(v["expect"])
	for _, word := range strings.Fields(v["joins"]) {
		service, networks, _ := strings.Cut(word, "=")
		if s.joins == nil {
			s.joins = map[string][]string{}
		}
		s.joins[service] = strings.FieldsFunc(networks, func(c rune) bool { return c == ',' })
	}
	return s
}

// own returns the containers in list that were created for the stack, and how many of those are gone. A
// replacement for one that is gone counts as own; a container that somebody ran beside them does not.
func (s expectation) own(list []container) (own []container, gone int) {
	for _, c := range list {
		if c.service != "" && (len(s.made) == 0 || slices.Contains(s.made, c.name)) {
			own = append(own, c)
		}
	}
	if len(s.made) == 0 {
		return own, s.expect - len(list)
	}
	if gone = len(s.made) - len(own); gone > 0 && !s.walled {
		for _, c := range list {
			if c.service != "" && !slices.Contains(s.made, c.name) {
				own, gone = append(own, c), gone-1
			}
		}
	}
	return own, gone
}

// judge says what is broken in a sandbox that was ready, "" = nothing: its walls, a service that must not end
// has ended, nothing runs, or a container is not where it was put.
func (s expectation) judge(list []container) string {
	if s.breach != "" {
		return s.breach + ", so its egress is not limited"
	}
	own, gone := s.own(list)
	up := 0
	for _, c := range own {
		if why := s.ended(c); why != "" {
			return why
		}
		if c.up() {
			up++
		}
	}
	for _, c := range list {
		if why := s.misplaced(c); why != "" {
			return why
		}
	}
	switch {
	case up == 0 && s.running:
		return "its containers are gone"
	case gone > 0 && len(s.made) > 0 && len(list) >= len(s.made):
		return fmt.Sprintf("%d of its %d containers were replaced by others, and their limits are unknown", gone, len(s.made))
	case gone > 0:
		return fmt.Sprintf("missing %[2]d of its %[1]d containers", max(s.expect, len(s.made)), gone)
	}
	return ""
}

// ended reports a container that should run but does not.
func (s expectation) ended(c container) string {
	service := extensions.Clean(c.service, 80)
	switch {
	case c.paused() && !s.paused && !s.held:
		return fmt.Sprintf("the service %s is paused; run `docker unpause %s` on the host to resume it", service, extensions.Clean(c.name, 12))
	case c.up():
		return ""
	case c.exited0() && !s.lasting(c.service):
		return ""
	case c.ended():
		return fmt.Sprintf("the service %s has ended: %s", service, extensions.Clean(c.status, 80))
	case len(s.made) > 0:
		return fmt.Sprintf("the service %s is not running: %s", service, extensions.Clean(c.status, 80))
	}
	return ""
}

// lasting reports whether a service that ended successfully should not have: it must run, or it ran when the
// sandbox was ready and is no job.
func (s expectation) lasting(service string) bool {
	return slices.Contains(s.long, service) || slices.Contains(s.ran, service) && !slices.Contains(s.done, service)
}

// misplaced reports a running container that is not on its networks. Under default deny, no other network is
// known to hold.
func (s expectation) misplaced(c container) string {
	want, known := s.joins[c.service]
	if !known || !c.up() {
		return ""
	}
	service := extensions.Clean(c.service, 80)
	left := slices.Clone(want)
	for _, full := range c.networks {
		name, ours := strings.CutPrefix(full, s.project+"_")
		if i := slices.Index(left, name); ours && i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else if s.walled && full != "none" {
			return fmt.Sprintf("the service %s was connected to the network %s, where default deny does not hold", service,
				extensions.Clean(full, 80))
		}
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("the service %s is no longer on its network %s: it was disconnected, or the network removed", service,
		extensions.Clean(left[0], 80))
}

// unwell names the unhealthy services of a running stack, "" = none.
func (s expectation) unwell(list []container) string {
	own, _ := s.own(list)
	var all []string
	for _, c := range own {
		if s.paused && c.up() && !c.paused() {
			all = append(all, "it is paused, and the service "+extensions.Clean(c.service, 80)+" is still running: pause or resume it again")
		}
		if c.unhealthy() {
			all = append(all, "the service "+extensions.Clean(c.service, 80)+" is unhealthy"+c.health)
		}
	}
	return strings.Join(all, "; ")
}

// parseHealth reads what health_of of sh/look.sh prints: per check a line with the container, the exit code
// and a JSON string. The last line of each counts.
func parseHealth(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(words) != 3 {
			continue
		}
		code, err := strconv.Atoi(words[1])
		var said string
		if err != nil || json.Unmarshal([]byte(words[2]), &said) != nil {
			continue
		}
		all[words[0]] = fmt.Sprintf(": its health check ended with exit code %d", code)
		if said = strings.TrimSpace(said); said != "" {
			all[words[0]] = fmt.Sprintf("%s and said: %s", all[words[0]], extensions.LastLines(said, maxHealth))
		}
	}
	return all
}
