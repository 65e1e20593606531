package remote

import (
	"errors"
	"fmt"
	"strings"
)

// matches evaluates a Match line. All criteria must hold. They are checked in order up to the first that
// fails, so a criterion we cannot evaluate matters only to hosts that reach it.
func (c *sshConfig) matches(words []string) (bool, error) {
	if len(words) == 0 {
		return false, errors.New("a Match line has no criterion")
	}
	for len(words) > 0 {
		word, wanted := strings.CutPrefix(words[0], "!")
		wanted = !wanted
		name, value, joined := strings.Cut(word, "=")
		name = strings.ToLower(name)
		words = words[1:]
		if name != "all" && name != "canonical" && name != "final" && !joined {
			if len(words) == 0 {
				return false, fmt.Errorf("criterion %s of a Match line has no argument", name)
			}
			value, words = words[0], words[1:]
		}
		holds, err := c.criterion(name, value)
		if err != nil {
			return false, err
		}
		if holds != wanted {
			return false, nil
		}
	}
	return true, nil
}

func (c *sshConfig) criterion(name, value string) (bool, error) {
	switch name {
	case "all":
		return true, nil
	case "canonical", "tagged": // names are not canonicalized here, and nothing tags us
		return false, nil
	case "host":
		host := c.name
		if v := c.values["hostname"]; v != nil {
			host = v[0]
		}
		return matchList(strings.ToLower(value), strings.ToLower(host), ","), nil
	case "originalhost":
		return matchList(value, c.name, ","), nil
	case "user":
		user := c.user
		if v := c.values["user"]; user == "" && v != nil {
			user = v[0]
		}
		if user == "" {
			user = c.userEnv.user
		}
		return matchList(value, user, ","), nil
	case "localuser":
		return matchList(value, c.userEnv.user, ","), nil
	case "exec":
		return false, fmt.Errorf("a Match exec line would run a program for %s, which sandboxer does not do", c.name)
	}
	return false, fmt.Errorf("a Match %s line is not supported, and %s may depend on it", name, c.name)
}
