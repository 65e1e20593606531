package remote

import (
	"net"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// jumps reads ProxyJump: [user@]host[:port] or ssh:// addresses, separated by commas. Each host may itself be
// an alias.
func (c *sshConfig) jumps(h hop) ([]extensions.SSH, error) {
	v := c.values["proxyjump"]
	if v == nil || isNone(v) {
		return nil, nil
	}
	text, err := c.tokens(v[0], h, "%h%n%p%r")
	if err != nil {
		return nil, err
	}
	var out []extensions.SSH
	for spec := range strings.SplitSeq(text, ",") {
		j, ok := parseJump(strings.TrimSpace(spec))
		if !ok {
			return nil, c.bad("ProxyJump", v[0])
		}
		out = append(out, j)
	}
	return out, nil
}

func parseJump(spec string) (extensions.SSH, bool) {
	if inner, isURL := strings.CutPrefix(spec, "ssh://"); isURL {
		spec = strings.TrimSuffix(inner, "/")
	}
	var j extensions.SSH
	if at := strings.LastIndexByte(spec, '@'); at >= 0 {
		j.User, spec = spec[:at], spec[at+1:]
	}
	j.Alias = spec
	if host, port, err := net.SplitHostPort(spec); err == nil {
		n, err := strconv.ParseInt(port, 10, 64)
		if err != nil || n < 1 || n > 65535 {
			return j, false
		}
		j.Alias, j.Port = host, n
	}
	j.Alias = strings.TrimSuffix(strings.TrimPrefix(j.Alias, "["), "]")
	return j, j.Alias != ""
}

// destination returns what a person passes to ssh(1) to get to the host: an alias or address as "host",
// "user@host" or "ssh://user@host:port".
func destination(s extensions.SSH) string {
	host := s.Alias
	if s.Address != "" {
		host = strings.TrimSuffix(strings.TrimPrefix(s.Address, "["), "]")
	}
	user := ""
	if s.User != "" {
		user = s.User + "@"
	}
	if s.Port == 0 || s.Port == 22 && s.Alias == "" {
		return user + host
	}
	return "ssh://" + user + net.JoinHostPort(host, strconv.FormatInt(s.Port, 10))
}
