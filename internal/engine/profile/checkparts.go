package profile

import (
	"maps"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// check finds mistakes in a profile's single values. A value with placeholders is checked once it is
// filled in.
func check(p *Profile, deferred [][]string) strictyaml.Errors {
	c := newChecker(p)
	c.deferred = deferred
	c.values()
	return c.errs
}

func (c *checker) values() {
	c.identity()
	c.routing()
	c.walls()
	c.lifetime()
	c.work()
	c.source()
	c.probe()
	c.inputs()
	c.options()
}

func (c *checker) identity() {
	c.named(ProfilePrefix, c.p.ID, c.p.Version)
	c.text(c.p.Extends, reference(ProfilePrefix), "extends")
}

// named checks what every file must have: an id and a version.
func (c *checker) named(prefix, id, version string) {
	switch {
	case id != "" || c.pos.Has("id"):
		c.is(CheckID(prefix, id), "id")
	default:
		c.fail(nil, "id is required, as in id: %smine", prefix)
	}
	switch {
	case version != "" || c.pos.Has("version"):
		c.is(checkVersion(version), "version")
	default:
		c.fail(nil, `version is required, as in version: "1.0.0"`)
	}
}

func (c *checker) routing() {
	p := c.p
	c.text(p.Extension, id(ExtensionPrefix), "extension")
	if r := p.Route; r != nil {
		c.oneOf(r.Strategy, "a strategy", Strategies, "route", "strategy")
		c.each(r.Fallback, id(ExtensionPrefix), "route", "fallback")
		if k := r.Constraints; k != nil {
			c.text(k.MaxCostPerHour, checkMoney, "route", "constraints", "max_cost_per_hour")
			c.oneOf(k.RequireIsolation, "an isolation level", isolationNames, "route", "constraints", "require_isolation")
			c.text(k.Region, CheckName, "route", "constraints", "region")
			c.oneOf(k.AuthMode, "an auth mode", AuthModes, "route", "constraints", "auth_mode")
		}
	}
	if pl := p.Placement; pl != nil {
		c.each(pl.Prefer, CheckName, "placement", "prefer")
		c.each(pl.Fallback, CheckName, "placement", "fallback")
	}
	if r := p.Reachability; r != nil {
		c.text(r.Tunnel, CheckName, "reachability", "tunnel")
		c.text(r.Identity, CheckName, "reachability", "identity")
	}
	if m := p.Metadata; m != nil {
		c.oneOf(m.CostClass, "a cost class", costClasses, "metadata", "cost_class")
		c.text(m.LatencyClass, CheckName, "metadata", "latency_class")
	}
}

func (c *checker) walls() {
	p := c.p
	if p.Isolation != nil {
		c.oneOf(p.Isolation.Level, "an isolation level", isolationNames, "isolation", "level")
	}
	if n := p.Network; n != nil {
		c.oneOf(n.Default, "a network default", []string{networkDeny, networkAllow}, "network", "default")
		c.each(n.Egress, func(s string) error { _, err := ParseEgress(s); return err }, "network", "egress")
		if n.Default != nil && *n.Default == networkAllow && len(n.Egress) > 0 {
			c.fail([]string{"network", "egress"}, "egress rules have no effect with default: allow; remove them or set default: deny")
		}
	}
	if w := p.Workspace; w != nil {
		c.oneOf(w.Mode, "a workspace mode", workspaceModes, "workspace", "mode")
		c.oneOf(w.Access, "a workspace access", accesses, "workspace", "access")
	}
	if r := p.Resources; r != nil {
		c.is(checkPositive("memory_mb", r.MemoryMB, mostMemoryMB), "resources", "memory_mb")
		c.is(checkPositive("disk_mb", r.DiskMB, mostDiskMB), "resources", "disk_mb")
		c.is(checkPositive("pids", r.Pids, mostPids), "resources", "pids")
	}
}

func (c *checker) lifetime() {
	c.eachOf(c.p.Overrides, "a field that a request may set", Overridable, "overrides")
	c.oneOf(c.p.ScopeDefault, "a scope", scopes, "scope_default")
	if t := c.p.TTL; t != nil {
		c.is(checkSpan("ttl.default", t.Default, MinTTL), "ttl", "default")
		c.is(checkSpan("ttl.max", t.Max, MinTTL), "ttl", "max")
		c.is(checkSpan("ttl.idle_reap", t.IdleReap, extensions.MinIdleReap), "ttl", "idle_reap")
	}
}

func (c *checker) work() {
	p := c.p
	if s := p.Setup; s != nil {
		if s.Instructions != nil && len(*s.Instructions) > maxInstructions {
			c.fail([]string{"setup", "instructions"}, "the instructions have %d bytes; at most %d are accepted", len(*s.Instructions),
				maxInstructions)
		}
		names := map[string]bool{}
		for i, ref := range s.SecretRefs {
			if names[ref.Name] && ref.Name != "" {
				c.fail([]string{"setup", "secret_refs", strconv.Itoa(i)}, "the secret %s is listed twice", ref.Name)
			}
			names[ref.Name] = true
		}
	}
	c.oneOf(p.SecretsAs, "a delivery of secrets", secretDeliveries, "secrets_as")
	if t := p.Toolchain; t != nil {
		c.kits(t.Kits, "toolchain", "kits")
		c.steps(t.Install, "toolchain", "install")
		c.steps(t.PostAcquire, "toolchain", "post_acquire")
		c.steps(t.PreRelease, "toolchain", "pre_release")
		c.variables(t.Env, "toolchain", "env")
	}
	if r := p.Requires; r != nil {
		c.each(r.Runtime, kind("a runtime kind"), "requires", "runtime")
		c.each(r.Capabilities, kind("a requirement kind"), "requires", "capabilities")
		c.eachOf(r.OS, "an operating system", systems, "requires", "os")
		c.eachOf(r.Arch, "an architecture", slices.Concat(architectures, slices.Sorted(maps.Keys(archAliases))), "requires", "arch")
	}
}

// CheckKind returns KindInvalid unless s is a valid what, which is a runtime or requirement kind: letters,
// digits and . _ : @ / + -, at most 128 bytes.
func CheckKind(what, s string) error {
	if len(s) > maxID || !word(s, "._:@/+-") {
		return invalid("%s is not %s: want letters, digits and . _ : @ / + -, at most %d", quoted(s), what, maxID)
	}
	return nil
}

func kind(what string) func(string) error {
	return func(s string) error { return CheckKind(what, s) }
}

func (c *checker) probe() {
	r := c.p.Readiness
	if r == nil {
		return
	}
	if r.Command != nil {
		c.is(checkArgv(r.Command), "readiness", "command")
	}
	c.text(r.HTTP, checkProbeURL, "readiness", "http")
	c.text(r.TCP, checkHostPort, "readiness", "tcp")
	c.text(r.Service, CheckName, "readiness", "service")
	for name, said := range map[string]bool{"service": r.Service != nil, "settle": r.Settle != nil} {
		if said && c.p.Image != nil {
			c.fail([]string{"readiness", name}, "readiness.%s applies to compose and containers: an image is one container", name)
		}
	}
	for name, d := range map[string]*Duration{"interval": r.Interval, "timeout": r.Timeout} {
		if d != nil && (*d < Duration(10*time.Millisecond) || *d > Duration(day)) {
			c.fail([]string{"readiness", name}, "%s %s is not between 10ms and 1d", name, FormatDuration(duration(d)))
		}
	}
	if d := r.Settle; d != nil && (*d < 0 || *d > Duration(maxSettle)) {
		c.fail([]string{"readiness", "settle"}, "settle %s is not between 0s (off) and %s", FormatDuration(duration(d)),
			FormatDuration(maxSettle))
	}
}

func checkArgv(argv []string) error {
	if len(argv) == 0 || argv[0] == "" {
		return invalid("the command is empty")
	}
	if len(argv) > maxList {
		return invalid("the command has %d words; at most %d are accepted", len(argv), maxList)
	}
	for _, a := range argv {
		if err := script("the command")(a); err != nil {
			return err
		}
	}
	return nil
}

func checkProbeURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.ContainsFunc(s, isControl) {
		return invalid("%s is not a URL to probe: want http://host:port/path from inside the sandbox", quoted(s))
	}
	if port := u.Port(); port != "" {
		return checkPort(port)
	}
	return nil
}

func checkHostPort(s string) error {
	host, port, ok := cutPort(s)
	if !ok {
		return invalid("%s is not host:port, as in localhost:5432", quoted(s))
	}
	if bare := strings.Trim(host, "[]"); badDomain(host) != "" {
		if _, err := netip.ParseAddr(bare); err != nil {
			return invalid("%s is not host:port: %s is not a host", quoted(s), quoted(host))
		}
	}
	return checkPort(port)
}

func checkPort(s string) error {
	if n, err := strconv.ParseUint(s, 10, 16); err != nil || n == 0 {
		return invalid("%s is not a port between 1 and 65535", quoted(s))
	}
	return nil
}

func (c *checker) options() {
	for _, ext := range slices.Sorted(maps.Keys(c.p.Options)) {
		c.is(CheckID(ExtensionPrefix, ext), "options", ext)
	}
}

// checkInside accepts a path that stays inside its folder.
func checkInside(what string) func(string) error {
	return func(s string) error {
		if err := line(what)(s); err != nil {
			return err
		}
		clean := path.Clean(s)
		if path.IsAbs(s) || clean == ".." || strings.HasPrefix(clean, "../") || strings.Contains(s, `\`) {
			return invalid("%s %s leaves its folder: want a relative path without .. and with / between its parts", what, quoted(s))
		}
		return nil
	}
}

func duration(d *Duration) time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(*d)
}
