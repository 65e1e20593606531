package remote

import (
	"errors"
	"fmt"
	"strings"
)

// matches settles a Match line. Criteria hold all; they are looked at in order
// and only as far as the first that fails, so a criterion we cannot settle
// matters only to hosts that it would be asked about.
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
	case "canonical", "tagged": // names are not made canonical here, and nothing tags us
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
			user = c.place.user
		}
		return matchList(value, user, ","), nil
	case "localuser":
		return matchList(value, c.place.user, ","), nil
	case "exec":
		return false, fmt.Errorf("a Match exec line would run a program to know about %s: that is not done", c.name)
	}
	return false, fmt.Errorf("a Match %s line is not supported, and %s may depend on it", name, c.name)
}
