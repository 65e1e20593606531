package compose

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// defaultCaps are what Docker gives every container.
var defaultCaps = []string{"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
	"NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}

// grantableCaps widen what a container may do without making it the host's root. All others are refused
// whatever a profile says.
var grantableCaps = []string{"IPC_LOCK", "LEASE", "NET_ADMIN", "NET_BROADCAST", "NET_RAW", "SYS_NICE", "SYS_PTRACE", "SYS_RESOURCE"}

func capAdd(p *policer, where string, v reflect.Value) {
	for i := range v.Len() {
		written := v.Index(i).String()
		name := strings.TrimPrefix(strings.ToUpper(written), "CAP_")
		at, found := fmt.Sprintf("%s[%d]", where, i), "the capability "+quoted(written)
		net := name == "NET_RAW" || name == "NET_ADMIN"
		switch {
		case net && p.in.Deny:
			p.found.refuse("cap-add", at, found)
		case slices.Contains(defaultCaps, name):
		case slices.Contains(grantableCaps, name):
			p.found.refuseUnless("cap-add", name, at, found)
		default:
			p.found.refuse("cap-add", at, found)
		}
	}
}

var grantableDevice = regexp.MustCompile(`^/dev/(fuse|kvm|net/tun|dri|dri/(card|renderD)[0-9]{1,4})$`)

func devices(p *policer, where string, v reflect.Value) {
	for i, d := range v.Interface().([]types.DeviceMapping) {
		at, found := fmt.Sprintf("%s[%d]", where, i), "the device "+quoted(d.Source)
		if grantableDevice.MatchString(d.Source) && (d.Target == "" || strings.HasPrefix(d.Target, "/")) &&
			regexp.MustCompile(`^[rwm]{0,3}$`).MatchString(d.Permissions) {
			p.found.refuseUnless("devices", d.Source, at, found)
			p.walk(at, v.Index(i))
		} else {
			p.found.refuse("devices", at, found)
		}
	}
}

// noCDI refuses what a grant of accelerators does not cover: through that driver a container gets any device
// and mount that files on the host describe.
func noCDI(p *policer, where string, v reflect.Value) {
	if strings.EqualFold(strings.TrimSpace(v.String()), "cdi") {
		never("devices")(p, where, v)
	}
}

// harmlessSysctls belong to the container's own network namespace and change only its own sockets.
var harmlessSysctls = []string{"net.core.somaxconn", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_tw_reuse"}

var grantableSysctl = regexp.MustCompile(`^(net\.[a-z0-9_.-]+|kernel\.(shm|msg|sem)[a-z_]*|fs\.mqueue\.[a-z_]+)$`)

func sysctls(p *policer, where string, v reflect.Value) {
	for _, k := range v.MapKeys() {
		name := k.String()
		at, found := join(where, name), "it is set to "+quoted(v.MapIndex(k).String())
		switch {
		case slices.Contains(harmlessSysctls, name):
		case !grantableSysctl.MatchString(name), strings.HasPrefix(name, "net.") && p.in.Deny:
			p.found.refuse("sysctls", at, found)
		default:
			p.found.refuseUnless("sysctls", name, at, found)
		}
	}
}

// limitBounds are the ulimits accepted up to a value; -1 is no limit.
var limitBounds = map[string]int{"nofile": 1 << 20, "nproc": 1 << 16, "core": math.MaxInt, "stack": 1 << 30, "fsize": math.MaxInt,
	"cpu": math.MaxInt, "as": math.MaxInt, "data": math.MaxInt, "rss": math.MaxInt, "locks": math.MaxInt, "sigpending": 1 << 17,
	"memlock": 1 << 26, "msgqueue": 1 << 24}

func ulimits(p *policer, where string, v reflect.Value) {
	all := v.Interface().(map[string]*types.UlimitsConfig)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		u := all[name]
		if u == nil {
			continue
		}
		most, known := limitBounds[name]
		p.walk(join(where, name), reflect.ValueOf(u))
		at, found := join(where, name), fmt.Sprintf("it is %d", max(u.Single, u.Soft, u.Hard))
		if low := min(u.Single, u.Soft, u.Hard); low < 0 {
			found = fmt.Sprintf("it is %d", low)
		} else if known && max(u.Single, u.Soft, u.Hard) <= most {
			continue
		}
		if known {
			p.found.refuseUnless("ulimits", name, at, found)
		} else {
			p.found.refuse("ulimits", at, found)
		}
	}
}

// bundleFile judges the file of a config or secret.
func bundleFile(rule string) check {
	return func(p *policer, where string, v reflect.Value) {
		p.named(v.String(), rule, where, true)
	}
}

// sockets match engines' own sockets. Any path that ends like one is treated and reported as one.
var sockets = regexp.MustCompile(`(?i)(^|/)((docker|podman|crio|buildkitd|containerd)[a-z-]*\.sock|` +
	`run/(docker|podman|containerd|crio)(/.*)?)$`)

// drive is how Compose recognizes a path on a Windows drive.
var drive = regexp.MustCompile(`^[A-Za-z]:[/\\]`)

// volumes judges mounts: their type, and the source of binds.
func volumes(p *policer, where string, v reflect.Value) {
	for i := range v.Len() {
		at := fmt.Sprintf("%s[%d]", where, i)
		m := v.Index(i).Interface().(types.ServiceVolumeConfig)
		if text := cmp.Or(m.Source, m.Target); drive.MatchString(text) {
			rule := "mount-path"
			if m.Source != "" && strings.HasPrefix(m.Target, "/") {
				rule = "bind-outside"
			}
			p.found.refuse(rule, at, fmt.Sprintf("Docker reads %s as a path on the Windows drive %s; give the volume a longer name, such as %s",
				quoted(text), text[:2], quoted("vol-"+text[:1])))
			continue
		}
		if !strings.HasPrefix(m.Target, "/") || strings.ContainsAny(m.Target, ":\x00\n") ||
			strings.HasPrefix(m.Source, Root+"/") && strings.ContainsRune(m.Source, ':') {
			p.found.refuse("mount-path", at, fmt.Sprintf("%s on %s", quoted(shown(m.Source)), quoted(m.Target)))
			continue
		}
		switch m.Type {
		case types.VolumeTypeBind:
			p.bindMount(at, m)
		case types.VolumeTypeVolume:
			if m.Source != "" && !namePattern.MatchString(m.Source) {
				p.found.refuse("bind-outside", at, quoted(m.Source)+" is not a volume name")
			}
		case types.VolumeTypeTmpfs:
			if m.Source != "" {
				p.found.refuse("tmpfs", at, "it has the source "+quoted(m.Source))
			}
		default:
			p.found.refuse("volume-type", at, "the type is "+quoted(m.Type))
			continue
		}
		p.walk(at, v.Index(i))
	}
}

// bindMount accepts a bind whose source is in the bundle, or will be. The renderer keeps containers from
// moving what another binds (see pin).
func (p *policer) bindMount(at string, m types.ServiceVolumeConfig) {
	_, _, err := p.inBundle(m.Source)
	switch {
	case sockets.MatchString(path.Clean(strings.TrimSpace(m.Source))) && !strings.HasPrefix(m.Source, Root+"/"):
		p.found.refuse("docker-socket", at, "the source is "+quoted(shown(m.Source)))
	case err != nil:
		p.found.refuse("bind-outside", at, fmt.Sprintf("%s: %v", quoted(shown(m.Source)), err))
	}
}
