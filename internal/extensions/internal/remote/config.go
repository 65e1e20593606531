package remote

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Where ssh keeps what all users of a machine share.
const (
	systemConfig      = "/etc/ssh/ssh_config"
	systemKnownHosts  = "/etc/ssh/ssh_known_hosts"
	systemKnownHosts2 = "/etc/ssh/ssh_known_hosts2"
)

// userEnv is the local user, with home and options, against which arguments are resolved.
type userEnv struct {
	options Options
	home    string
	user    string // the local one
}

func newUserEnv(o Options) (userEnv, error) {
	p := userEnv{options: o.withDefaults(), home: o.Home}
	current, err := user.Current()
	if err == nil {
		_, name, isDomain := strings.Cut(current.Username, `\`)
		if !isDomain {
			name = current.Username
		}
		p.user = name
	} else {
		p.user = p.options.Getenv("USER")
	}
	if p.home == "" {
		if p.home, err = os.UserHomeDir(); err != nil {
			return p, extensions.Errorf(extensions.KindInvalid, "no home folder to find SSH keys in: %w", err).
				WithRemedy("set HOME")
		}
	}
	return p, nil
}

func (p userEnv) ssh(name string) string { return filepath.Join(p.home, ".ssh", name) }

// path expands ~ in a path that an argument gave; as with ssh's arguments, a relative path starts at the
// working directory.
func (p userEnv) path(path string) string {
	if path == "~" {
		return p.home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(p.home, rest)
	}
	return path
}

// maxHops bounds how many hops ProxyJump may add.
const maxHops = 8

// resolve returns the way to a host: its jump hosts in order, then the host.
func resolve(s extensions.SSH, o Options) ([]hop, error) {
	p, err := newUserEnv(o)
	if err != nil {
		return nil, err
	}
	return p.way(s, 0)
}

// way resolves a host and its jump hosts: the given ones or, for an alias, its ProxyJump. As in ssh, only the
// first of several may have jump hosts of its own.
func (p userEnv) way(s extensions.SSH, depth int) ([]hop, error) {
	if depth >= maxHops {
		return nil, extensions.Errorf(extensions.KindInvalid, "the connection to %s needs more than %d jump hosts", destination(s), maxHops).
			WithRemedy("look for ProxyJump entries that form a cycle").At("ssh.jump")
	}
	last, jumps, err := p.hop(s)
	if err != nil {
		return nil, err
	}
	var hops []hop
	for i, j := range jumps {
		var via []hop
		if i == 0 {
			via, err = p.way(j, depth+1)
		} else {
			var h hop
			h, _, err = p.hop(j)
			via = []hop{h}
		}
		if err != nil {
			return nil, err
		}
		hops = append(hops, via...)
	}
	return append(hops, last), nil
}

// hop resolves one machine. Arguments override ssh_config.
func (p userEnv) hop(s extensions.SSH) (hop, []extensions.SSH, error) {
	c := &sshConfig{userEnv: p, values: map[string][]string{}}
	if s.Alias != "" {
		var err error
		if c, err = p.lookUp(s.Alias, s.User); err != nil {
			return hop{}, nil, err
		}
		if err := c.supported(len(s.Jump) > 0); err != nil {
			return hop{}, nil, err
		}
	}
	h := hop{network: "tcp", timeout: p.options.DialTimeout}
	for _, settle := range []func(extensions.SSH, *hop) error{c.settleAddress, c.settleUser, c.settleTimes, c.settleRules, c.settleLogin} {
		if err := settle(s, &h); err != nil {
			return hop{}, nil, err
		}
	}
	h.label = h.user + "@" + h.host
	if h.port != 22 {
		h.label = h.user + "@" + h.address()
	}
	jumps := s.Jump
	if len(jumps) == 0 {
		var err error
		if jumps, err = c.jumps(h); err != nil {
			return hop{}, nil, err
		}
	}
	return h, jumps, nil
}

// supported refuses settings that we would have to run or know to connect correctly.
func (c *sshConfig) supported(jumpsGiven bool) error {
	refuse := func(keyword, why, remedy string) error {
		return extensions.Errorf(extensions.KindUnsupported, "%s of the ssh_config entry for %s %s", keyword, c.name, why).WithRemedy("%s",
			remedy)
	}
	if v := c.values["proxycommand"]; v != nil && !isNone(v) && !jumpsGiven {
		return refuse("ProxyCommand", "is a program, which sandboxer does not run", "use ProxyJump there, or `jump` in the host's ssh block")
	}
	if v := c.values["knownhostscommand"]; v != nil && !isNone(v) {
		return refuse("KnownHostsCommand", "is a program, which sandboxer does not run",
			"give the host's key as host_key, known_hosts or host_ca")
	}
	if v := c.values["revokedhostkeys"]; v != nil && !isNone(v) {
		return refuse("RevokedHostKeys", "is not read, and ignoring it would be unsafe",
			"write the keys as @revoked lines of known_hosts, and set an address instead of the alias")
	}
	if v := c.values["canonicalizehostname"]; v != nil && !strings.EqualFold(v[0], "no") && !strings.EqualFold(v[0], "none") {
		return refuse("CanonicalizeHostname", "is not supported", "give the full name of the host")
	}
	return nil
}

func isNone(v []string) bool { return len(v) == 1 && strings.EqualFold(v[0], "none") }

func (c *sshConfig) settleAddress(s extensions.SSH, h *hop) error {
	h.host = s.Address
	if h.host == "" {
		h.host = s.Alias
		if v := c.values["hostname"]; v != nil {
			name, err := c.tokens(v[0], hop{host: s.Alias}, "%h")
			if err != nil {
				return err
			}
			h.host = name
		} else {
			h.hint = ", which is not a Host with a HostName in ssh_config"
		}
	}
	if inner, ok := strings.CutPrefix(h.host, "["); ok {
		h.host = strings.TrimSuffix(inner, "]")
	}
	h.host = strings.ToLower(h.host)
	if h.host == "" {
		return extensions.Errorf(extensions.KindInvalid, "the host has neither an address nor an alias").
			WithRemedy("set `address` or `alias` in its ssh block").At("ssh.address")
	}
	h.port = 22
	if v := c.values["port"]; v != nil && s.Port == 0 {
		port, err := strconv.Atoi(v[0])
		if err != nil || port < 1 || port > 65535 {
			return c.bad("Port", v[0])
		}
		h.port = port
	}
	if s.Port != 0 {
		if s.Port < 1 || s.Port > 65535 {
			return extensions.Errorf(extensions.KindInvalid, "%d is not a port", s.Port).At("ssh.port")
		}
		h.port = int(s.Port)
	}
	if v := c.values["addressfamily"]; v != nil {
		family, ok := map[string]string{"any": "tcp", "inet": "tcp4", "inet6": "tcp6"}[strings.ToLower(v[0])]
		if !ok {
			return c.bad("AddressFamily", v[0])
		}
		h.network = family
	}
	return nil
}

func (c *sshConfig) settleUser(s extensions.SSH, h *hop) error {
	h.user = s.User
	if v := c.values["user"]; h.user == "" && v != nil {
		h.user = v[0]
	}
	if h.user == "" {
		h.user = c.userEnv.user
	}
	if h.user == "" {
		return extensions.Errorf(extensions.KindInvalid, "no SSH user for %s", h.host).
			WithRemedy("set `ssh.user`").At("ssh.user")
	}
	return nil
}

func (c *sshConfig) settleTimes(_ extensions.SSH, h *hop) error {
	v := c.values["connecttimeout"]
	if v == nil || isNone(v) {
		return nil
	}
	limit, err := time.ParseDuration(v[0])
	if seconds, plain := strconv.Atoi(v[0]); plain == nil {
		limit, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || limit < 0 || limit > time.Hour {
		return c.bad("ConnectTimeout", v[0])
	}
	if limit > 0 {
		h.timeout = limit
	}
	return nil
}

func (c *sshConfig) settleRules(s extensions.SSH, h *hop) error {
	h.rules = hostRules{host: h.host, port: h.port, pinned: s.HostKey, ca: s.HostCA}
	if v := c.values["hostkeyalias"]; v != nil {
		h.rules.host, h.rules.port = strings.ToLower(v[0]), 0
	}
	if s.KnownHosts != "" {
		h.rules.files, h.rules.strict = []string{c.path(s.KnownHosts)}, true
		return nil
	}
	if s.HostKey != "" || s.HostCA != "" {
		return nil
	}
	for _, f := range []struct {
		keyword  string
		defaults []string
	}{
		{"userknownhostsfile", []string{c.ssh("known_hosts"), c.ssh("known_hosts2")}},
		{"globalknownhostsfile", []string{systemKnownHosts, systemKnownHosts2}},
	} {
		files := f.defaults
		if v := c.values[f.keyword]; v != nil {
			var err error
			if files, err = c.files(v, *h); err != nil {
				return err
			}
		}
		h.rules.files = append(h.rules.files, files...)
	}
	return nil
}

func (c *sshConfig) bad(keyword, value string) error {
	return extensions.Errorf(extensions.KindInvalid, "%s %s of the ssh_config entry for %s cannot be used", keyword,
		extensions.Clean(value, 60), c.name).
		WithRemedy("correct it, or set it in the host's ssh block")
}
