package composessh

import (
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// exit is the end of a container; code "" = it has not ended, or nobody asked.
type exit struct {
	code string
	at   time.Time // by the host's clock
}

// parseExits reads what exits_of of sh/look.sh prints, by container.
func parseExits(text string) map[string]exit {
	all := map[string]exit{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, words[2])
		if _, bad := strconv.ParseUint(words[1], 10, 8); err == nil && bad == nil {
			all[words[0]] = exit{words[1], at}
		}
	}
	return all
}

// hostTime turns a time of the host's clock into one of the caller's. Both clocks were read at one moment, the host's
// in whole seconds: the result is at most a second early and never late.
func hostTime(at time.Time, caller, wall string) time.Time {
	milliseconds, err := strconv.ParseInt(caller, 10, 64)
	seconds, err2 := strconv.ParseInt(wall, 10, 64)
	if err != nil || err2 != nil || at.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds).Add(at.Sub(time.Unix(seconds+1, 0)) + time.Millisecond).UTC()
}

// ends sets o to the end of the sandbox by its entrypoint's; false if that runs, or there is none.
func (r record) ends(o *extensions.Observation, list []container) bool {
	if r.values["entrypoint"] == "" {
		return false
	}
	end := oneExit(r.values["exits"]) // of a container that is gone
	for _, c := range list {
		if c.service == r.values["service"] && !c.up() && c.exit.code != "" {
			end = c.exit
		}
	}
	if end.code == "" {
		return false
	}
	o.Phase, o.Reason = extensions.PhaseFailed, "its entrypoint ended with exit code "+end.code
	if end.code == "0" {
		o.Phase = extensions.PhaseTerminated
	}
	o.EndedAt = hostTime(end.at, r.values["clock_caller"], r.values["clock_wall"])
	if o.EndedAt.Before(o.StartedAt) {
		o.EndedAt = o.StartedAt
	}
	return true
}

func oneExit(text string) exit {
	for _, x := range parseExits(text) {
		return x
	}
	return exit{}
}
