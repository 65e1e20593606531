package profile

import (
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Step is one command of a toolchain: a text for the shell, or {run, timeout}.
type Step struct {
	Run     string
	Timeout Duration // 0 = not set
}

// UnmarshalStrict implements strictyaml.Unmarshaler.
func (s *Step) UnmarshalStrict(n strictyaml.Node) error {
	if n.Kind() != strictyaml.Mapping {
		n.Decode(&s.Run)
		return nil
	}
	var m struct {
		Run     *string   `yaml:"run"`
		Timeout *Duration `yaml:"timeout"`
	}
	if !n.Decode(&m) {
		return nil
	}
	if m.Run == nil {
		return invalid("run is required: the command")
	}
	s.Run = *m.Run
	if m.Timeout == nil {
		return nil
	}
	s.Timeout = *m.Timeout
	if s.Timeout < Duration(time.Second) || s.Timeout > Duration(day) {
		return invalid("timeout %s is not between 1s and 1d", FormatDuration(time.Duration(s.Timeout)))
	}
	return nil
}

func (c *checker) steps(list []Step, path ...string) {
	commands := make([]string, len(list))
	for i, s := range list {
		commands[i] = s.Run
	}
	c.each(commands, command, path...)
}

func command(s string) error {
	if strings.TrimSpace(s) == "" {
		return invalid("the command is empty")
	}
	return script("the command")(s)
}

// addSteps appends commands that are not in to yet. A repeated one keeps its position and takes the later
// timeout.
func addSteps(to []extensions.Step, steps []Step) []extensions.Step {
	for _, s := range steps {
		known := false
		for i := range to {
			if to[i].Run != s.Run {
				continue
			}
			known = true
			if s.Timeout != 0 {
				to[i].Timeout = extensions.Duration(s.Timeout)
			}
		}
		if !known {
			to = append(to, extensions.Step{Run: s.Run, Timeout: extensions.Duration(s.Timeout)})
		}
	}
	return to
}

func index(path []string, i int) []string { return append(path[:len(path):len(path)], strconv.Itoa(i)) }
