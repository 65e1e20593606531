package compose

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// oracle judges a policed model a second time, knowing nothing of the police:
// it reads the JSON that Compose would be given and looks for what must never
// be there.
func oracle(p *Project) []string {
	data, err := json.Marshal(p.Compose)
	if err != nil {
		return []string{"it cannot be written: " + err.Error()}
	}
	var root map[string]any
	if err := json.Unmarshal(data, &root); err != nil {
		return []string{err.Error()}
	}
	o := &judge{bundle: p.Bundle}
	o.top(root)
	return o.bad
}

type judge struct {
	bundle *Bundle
	bad    []string
}

func (o *judge) say(format string, args ...any) { o.bad = append(o.bad, fmt.Sprintf(format, args...)) }

var neverKeys = []string{"device_cgroup_rules", "privileged", "cgroup_parent", "userns_mode", "uts", "use_api_socket", "oom_kill_disable",
	"volume_driver", "external_links", "provider", "models", "pre_start", "annotations", "blkio_config", "credential_spec", "storage_opt",
	"external", "driver_opts", "template_driver", "mac_address", "ipv4_address", "ipv6_address", "link_local_ips", "entitlements", "ssh",
	"cache_from", "cache_to", "tags", "additional_contexts", "env_file", "label_file", "extends", "net", "cpu_rt_runtime", "cpu_rt_period",
	"generic_resources", "placement", "include", "isolation", "device_ids"}

func (o *judge) top(root map[string]any) {
	for _, k := range []string{"jobs", "models", "include"} {
		if root[k] != nil {
			o.say("%s", k)
		}
	}
	services, _ := root["services"].(map[string]any)
	for name, s := range services {
		o.service(name, s.(map[string]any))
	}
	for _, kind := range []string{"networks", "volumes", "secrets", "configs"} {
		all, _ := root[kind].(map[string]any)
		for name, v := range all {
			m := v.(map[string]any)
			o.keys(kind+"."+name, m)
			if d, _ := m["driver"].(string); d != "" && d != "local" && d != "bridge" {
				o.say("%s.%s driver %s", kind, name, d)
			}
			if ipam, _ := m["ipam"].(map[string]any); ipam["config"] != nil {
				o.say("%s.%s ipam", kind, name)
			}
			if f, _ := m["file"].(string); f != "" {
				o.inside(kind+"."+name, f)
			}
		}
	}
}

// keys looks for forbidden keys, but not where keys are names of one's own.
func (o *judge) keys(where string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			switch k {
			case "environment", "labels", "args", "sysctls", "ulimits", "extra_hosts", "depends_on", "options":
				continue
			case "networks":
				for n, c := range e.(map[string]any) {
					o.keys(where+".networks."+n, c)
				}
				continue
			}
			if m, ok := e.(map[string]any); slices.Contains(neverKeys, k) && e != nil && e != false && e != "" && (!ok || len(m) > 0) {
				o.say("%s.%s", where, k)
			}
			o.keys(where+"."+k, e)
		}
	case []any:
		for _, e := range v {
			o.keys(where, e)
		}
	}
}

var mayCaps = regexp.MustCompile(`(?i)^(CAP_)?(AUDIT_WRITE|CHOWN|DAC_OVERRIDE|FOWNER|FSETID|KILL|MKNOD|NET_BIND_SERVICE|NET_RAW|SETFCAP|SETGID|SETPCAP|SETUID|SYS_CHROOT|SYS_PTRACE)$`)

func (o *judge) service(name string, s map[string]any) {
	o.keys(name, s)
	for _, c := range list(s["cap_add"]) {
		if !mayCaps.MatchString(fmt.Sprint(c)) {
			o.say("%s cap %v", name, c)
		}
	}
	for _, d := range list(s["devices"]) {
		if d.(map[string]any)["source"] != "/dev/fuse" {
			o.say("%s device %v", name, d)
		}
	}
	for _, k := range []string{"pid", "ipc", "cgroup", "network_mode"} {
		if v, _ := s[k].(string); v != "" && v != "private" && v != "none" && v != "shareable" {
			o.say("%s %s %s", name, k, v)
		}
	}
	for _, v := range list(s["security_opt"]) {
		if !strings.HasPrefix(fmt.Sprint(v), "no-new-privileges") || strings.Contains(fmt.Sprint(v), "false") {
			o.say("%s security_opt %v", name, v)
		}
	}
	if b, _ := s["build"].(map[string]any); b != nil {
		o.inside(name+".build", b["context"].(string))
		if n, _ := b["network"].(string); n != "" && n != "none" && n != "default" {
			o.say("%s build network %s", name, n)
		}
		if f, _ := b["dockerfile"].(string); f != "" {
			o.inside(name+".dockerfile", f)
		}
	}
	for _, m := range list(s["volumes"]) {
		o.mount(name, m.(map[string]any))
	}
	labels, _ := s["labels"].(map[string]any)
	for k := range labels {
		if l := strings.ToLower(k); strings.Contains(l, "com.docker.") && strings.HasPrefix(l, "com.") || strings.HasPrefix(l, "sandboxer.") {
			o.say("%s label %s", name, k)
		}
	}
}

func (o *judge) mount(name string, m map[string]any) {
	source, _ := m["source"].(string)
	switch m["type"] {
	case "bind":
		o.inside(name, source)
		bind, _ := m["bind"].(map[string]any)
		if p, _ := bind["propagation"].(string); p != "" && p != "private" && p != "rprivate" {
			o.say("%s propagation %s", name, p)
		}
	case "volume":
		if strings.ContainsAny(source, `/\~`) {
			o.say("%s volume %s", name, source)
		}
	case "tmpfs":
	default:
		o.say("%s mount %v", name, m["type"])
	}
}

// inside wants a clean path below Root without a symbolic link on its way.
func (o *judge) inside(where, p string) {
	if p == Root {
		return
	}
	rel, ok := strings.CutPrefix(p, Root+"/")
	if !ok || path.Clean(p) != p {
		o.say("%s path %q", where, p)
		return
	}
	for at := rel; at != "."; at = path.Dir(at) {
		if e := o.bundle.entries[at]; e != nil && e.Type == TypeSymlink {
			o.say("%s link %q", where, p)
		}
	}
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
