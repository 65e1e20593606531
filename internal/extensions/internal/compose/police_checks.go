package compose

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// brief formats a value for a message: text as it is, anything else by its kind.
func brief(v reflect.Value) string {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float32:
		return fmt.Sprint(v.Interface())
	case reflect.Slice, reflect.Map:
		return fmt.Sprintf("%d entries", v.Len())
	}
	return "a mapping"
}

// oneOf refuses all other values.
func oneOf(rule string, values ...string) check {
	return func(p *policer, where string, v reflect.Value) {
		if !slices.Contains(values, v.String()) {
			never(rule)(p, where, v)
		}
	}
}

// namespace judges a namespace mode. The container's own is fine, a service's may be granted; everything else
// is refused, however it is spelled.
func namespace(rule string, services bool, own ...string) check {
	return func(p *policer, where string, v reflect.Value) {
		mode := strings.ToLower(strings.TrimSpace(v.String()))
		switch {
		case slices.Contains(own, v.String()):
		case strings.HasPrefix(mode, types.ContainerPrefix):
			never("namespace-container")(p, where, v)
		case services && strings.HasPrefix(v.String(), types.ServicePrefix) && p.isService(v.String()[len(types.ServicePrefix):]):
			grantable("namespace-service")(p, where, v)
		default:
			never(rule)(p, where, v)
		}
	}
}

func (p *policer) isService(name string) bool {
	_, on := p.project.Services[name]
	_, off := p.project.DisabledServices[name]
	return on || off
}

func networkMode(p *policer, where string, v reflect.Value) {
	mode := strings.ToLower(strings.TrimSpace(v.String()))
	switch {
	case v.String() == "none":
	case mode == "host":
		never("host-network")(p, where, v)
	case strings.HasPrefix(mode, types.ContainerPrefix):
		never("namespace-container")(p, where, v)
	default:
		never("network-mode")(p, where, v)
	}
}

func disabled(p *policer, _ string, v reflect.Value) { keyed(p, "services", v) }

// labels refuses labels that decide ownership. No file can set CustomLabels.
func labels(p *policer, where string, v reflect.Value) {
	for _, k := range v.MapKeys() {
		name := strings.ToLower(strings.TrimSpace(k.String()))
		if strings.HasPrefix(name, "sandboxer.") || strings.HasPrefix(name, "com.docker.") || name != strings.ToLower(k.String()) {
			p.found.refuse("label-reserved", join(where, k.String()), "the label "+quoted(k.String())+" is set")
		}
	}
}

var (
	userPattern      = regexp.MustCompile(`^[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?$`)
	namePattern      = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$`)
	platformPattern  = regexp.MustCompile(`^[a-z0-9]+(/[a-z0-9._]+){0,2}$`)
	interfacePattern = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]{0,14}$`)
	restartPattern   = regexp.MustCompile(`^(no|always|unless-stopped|on-failure(:\d{1,6})?)$`)
	pullPattern      = regexp.MustCompile(`^(always|never|missing|if_not_present|build|refresh|daily|weekly|every_[0-9wdhms]+)$`)
)

// matching refuses text that does not match form.
func matching(rule string, form *regexp.Regexp) check {
	return func(p *policer, where string, v reflect.Value) {
		if !form.MatchString(v.String()) {
			never(rule)(p, where, v)
		}
	}
}

func platforms(p *policer, where string, v reflect.Value) {
	for i := range v.Len() {
		matching("platform", platformPattern)(p, fmt.Sprintf("%s[%d]", where, i), v.Index(i))
	}
}

func subpath(p *policer, where string, v reflect.Value) {
	if plainPath(v.String()) != nil || slices.Contains(strings.Split(v.String(), "/"), "..") {
		never("mount-path")(p, where, v)
	}
}

const (
	maxScale = 20
	maxShm   = 8 << 30
	maxGrace = 10 * time.Minute
)

func replicas(p *policer, where string, v reflect.Value) {
	if n := v.Elem().Int(); n < 0 || n > maxScale {
		never("scale")(p, where, v)
	}
}

func shmSize(p *policer, where string, v reflect.Value) {
	if n := v.Int(); n < 0 || n > maxShm {
		never("shm-size")(p, where, v)
	}
}

func stopGrace(p *policer, where string, v reflect.Value) {
	if d := time.Duration(v.Elem().Int()); d < 0 || d > maxGrace {
		p.found.refuse("stop-grace", where, "it is "+d.String())
	}
}

func oomScore(p *policer, where string, v reflect.Value) {
	if v.Int() < 0 || v.Int() > 1000 {
		never("oom")(p, where, v)
	}
}

// links accepts only services of the stack, with or without an alias.
func links(p *policer, where string, v reflect.Value) {
	for i := range v.Len() {
		name, alias, _ := strings.Cut(v.Index(i).String(), ":")
		p.name(fmt.Sprintf("%s[%d]", where, i), alias)
		if !p.isService(name) {
			never("links")(p, fmt.Sprintf("%s[%d]", where, i), v.Index(i))
		}
	}
}

func volumesFrom(p *policer, where string, v reflect.Value) {
	for i := range v.Len() {
		name, mode, _ := strings.Cut(v.Index(i).String(), ":")
		if !p.isService(name) || !slices.Contains([]string{"", "ro", "rw"}, mode) {
			never("volumes-from")(p, fmt.Sprintf("%s[%d]", where, i), v.Index(i))
		}
	}
}

func runtimeName(p *policer, where string, v reflect.Value) {
	p.found.refuseUnless("runtime", v.String(), where, "it is set to "+quoted(v.String()))
}

func dns(p *policer, where string, v reflect.Value) {
	if p.in.Deny {
		never("dns")(p, where, v)
		return
	}
	grantable("dns")(p, where, v)
}

// extraHosts accepts plain addresses.
func extraHosts(p *policer, where string, v reflect.Value) {
	for _, k := range v.MapKeys() {
		for _, ip := range v.MapIndex(k).Interface().([]string) {
			at, found := join(where, k.String()), "it is "+quoted(ip)
			switch _, err := netip.ParseAddr(strings.Trim(ip, "[]")); {
			case strings.Contains(strings.ToLower(ip), "host-gateway") && p.in.Deny:
				p.found.refuse("host-gateway", at, found)
			case strings.Contains(strings.ToLower(ip), "host-gateway"):
				p.found.refuseUnless("host-gateway", "", at, found)
			case err != nil:
				p.found.refuse("extra-hosts", at, found)
			}
		}
	}
}

var logSize = regexp.MustCompile(`^[0-9]{1,4}[kmKM]?[bB]?$`)

// logging accepts local log files of at most 10 GB and 100 files.
func logging(p *policer, where string, v reflect.Value) {
	c := v.Interface().(*types.LoggingConfig)
	p.walk(where, v)
	if c.Driver != "" && c.Driver != "json-file" && c.Driver != "local" {
		p.found.refuse("logging", where+".driver", "the driver is "+quoted(c.Driver))
	}
	for k, o := range c.Options {
		n, err := strconv.Atoi(o)
		ok := false
		switch k {
		case "max-size":
			ok = logSize.MatchString(o)
		case "max-file":
			ok = err == nil && n >= 1 && n <= 100
		case "compress":
			ok = o == "true" || o == "false"
		}
		if !ok {
			p.found.refuse("logging", where+".options."+k, "it is "+quoted(o))
		}
	}
}

func securityOpt(p *policer, where string, v reflect.Value) {
	for i := range v.Len() {
		if !slices.Contains([]string{"no-new-privileges", "no-new-privileges:true", "no-new-privileges=true"}, v.Index(i).String()) {
			never("security-opt")(p, fmt.Sprintf("%s[%d]", where, i), v.Index(i))
		}
	}
}

var tmpfsOption = regexp.MustCompile(`^(size=\d{1,12}[kmgKMG%]?|mode=[0-7]{3,4}|uid=\d{1,10}|gid=\d{1,10}|` +
	`rw|ro|exec|noexec|nosuid|nodev|noatime|nr_inodes=\d{1,9}[kmg]?)$`)

func tmpfs(p *policer, where string, v reflect.Value) {
	for i := range v.Len() {
		target, options, has := strings.Cut(v.Index(i).String(), ":")
		bad := !strings.HasPrefix(target, "/")
		for _, o := range strings.Split(options, ",") {
			bad = bad || has && !tmpfsOption.MatchString(o)
		}
		if bad {
			p.found.refuse("tmpfs", fmt.Sprintf("%s[%d]", where, i), extensions.Clean(quoted(v.Index(i).String()), 100))
		}
	}
}
