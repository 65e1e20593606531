package compose

import (
	"slices"
	"strings"
	"testing"
)

// hostileBodies are services as flow mappings, each refused by one rule.
var hostileBodies = map[string]string{
	"{image: x, privileged: true}": "privileged", "{image: x, cap_add: [SYS_ADMIN]}": "cap-add", "{image: x, pid: host}": "host-pid",
	"{image: x, ipc: host}": "host-ipc", "{image: x, network_mode: host}": "host-network", "{image: x, userns_mode: host}": "host-userns",
	"{image: x, uts: host}": "host-uts", "{image: x, cgroup: host}": "host-cgroup", "{image: x, cgroup_parent: /x}": "cgroup-parent",
	"{image: x, devices: ['/dev/sda']}": "devices", "{image: x, device_cgroup_rules: ['a *:* rwm']}": "devices",
	"{image: x, security_opt: ['apparmor:unconfined']}": "security-opt", "{image: x, runtime: r}": "runtime",
	"{image: x, volumes: ['/etc:/x']}": "bind-outside", "{image: x, volumes: [{type: bind, source: /etc, target: /x}]}": "bind-outside",
	"{image: x, volumes: ['../../../../x:/x']}": "bind-outside", "{image: x, volumes: ['/var/run/docker.sock:/x']}": "docker-socket",
	"{image: x, use_api_socket: true}": "docker-socket", "{image: x, pid: 'container:x'}": "namespace-container",
	"{image: x, extra_hosts: ['h:host-gateway']}": "host-gateway", "{image: x, extra_hosts: {h: host-gateway}}": "host-gateway",
	"{image: x, labels: ['com.docker.compose.project=x']}": "label-reserved", "{image: x, labels: {sandboxer.id: x}}": "label-reserved",
	"{image: x, sysctls: {kernel.core_pattern: x}}": "sysctls", "{image: x, sysctls: ['kernel.core_pattern=x']}": "sysctls",
	"{image: x, ports: ['0.0.0.0:1:1']}": "port-public", "{image: x, ports: [{target: 1, host_ip: '::'}]}": "port-public",
	"{image: x, env_file: /etc/environment}":                         "env-file-outside",
	"{image: x, env_file: [{path: ../../../../e, required: false}]}": "env-file-outside",
	"{image: x, label_file: /etc/l}":                                 "label-file-outside", "{image: x, environment: [NOBODY_SETS_IT]}": "interpolate-environment",
	"{image: x, environment: {NOBODY_SETS_IT: }}": "interpolate-environment",
	"{image: x, command: '$NOBODY_SETS_IT'}":      "interpolate-environment",
	"{image: x, command: '${TOKEN}'}":             "interpolate-secret", "{build: https://example.com/x.git}": "build-remote",
	"{build: {context: ../../../..}}":      "build-outside",
	"{build: {context: /, dockerfile: x}}": "build-outside", "{image: x, build: {context: ., dockerfile: /etc/passwd}}": "build-outside",
	"{build: {context: ., network: host}}": "build-network", "{build: {context: ., privileged: true}}": "build-privileged",
	"{build: {context: ., ssh: [default]}}": "build-ssh",
	"{image: x, gpus: all}":                 "gpus", "{image: x, ulimits: {nofile: -1}}": "ulimits", "{image: x, storage_opt: {size: 1G}}": "storage-opt",
	"{image: x, logging: {driver: syslog}}": "logging", "{image: x, post_start: [{command: x, privileged: true}]}": "hook-privileged",
	"{image: x, pre_start: [{command: x}]}": "pre-start", "{image: x, volumes_from: ['container:x']}": "volumes-from",
	"{image: x, annotations: {a: b}}":                           "annotations",
	"{image: x, networks: {default: {driver_opts: {a: b}}}}":    "driver-opts",
	"{image: x, networks: {default: {ipv4_address: 10.0.0.2}}}": "ip-address",
	"{image: x, tmpfs: '/x:dev'}":                               "tmpfs", "{image: x, dns: 1.1.1.1}": "dns", "{image: x, oom_score_adj: -1}": "oom",
	"{image: x, scale: 21}": "scale",
	"{provider: {type: x}}": "provider", "{image: x, mac_address: '02:42:ac:11:65:43'}": "mac-address",
	"{image: x, external_links: [x]}":        "external-links",
	"{image: x, credential_spec: {file: x}}": "credential-spec", "{image: x, blkio_config: {weight: 10}}": "blkio",
}

// hidings carry a service into a stack by every way Compose has.
var hidings = map[string]struct {
	files  map[string]string
	inputs []string
}{
	"plain":           {files: map[string]string{"compose.yaml": "services: {a: %}"}},
	"anchor":          {files: map[string]string{"compose.yaml": "x-a: &a %\nservices: {a: *a}"}},
	"merge key":       {files: map[string]string{"compose.yaml": "x-a: &a %\nservices: {a: {<<: *a, tty: true}}"}},
	"merge keys":      {files: map[string]string{"compose.yaml": "x-a: &a %\nx-b: &b {tty: true}\nservices: {a: {<<: [*b, *a], init: true}}"}},
	"merged services": {files: map[string]string{"compose.yaml": "x-s: &s {a: %}\nservices: {<<: *s, b: {image: x}}"}},
	"extends":         {files: map[string]string{"compose.yaml": "services: {a: {extends: b}, b: %}"}},
	"extends off":     {files: map[string]string{"compose.yaml": "services: {a: {image: x}, c: {profiles: [off], extends: b}, b: %}"}},
	"extends file": {files: map[string]string{"compose.yaml": "services: {a: {extends: {file: sub/b.yaml, service: b}}}",
		"sub/b.yaml": "services: {b: %}"}},
	"extends far": {files: map[string]string{"compose.yaml": "services: {a: {extends: {file: sub/b.yaml, service: b}}}",
		"sub/b.yaml": "services: {b: {extends: {file: ../c.yaml, service: c}}}", "c.yaml": "services: {c: {extends: d}, d: %}"}},
	"extends by link": {files: map[string]string{"compose.yaml": "services: {a: {extends: {file: link/b.yaml, service: b}}}",
		"sub/b.yaml": "services: {b: %}"}},
	"include": {files: map[string]string{"compose.yaml": "include: [sub/b.yaml]", "sub/b.yaml": "services: {b: %}"}},
	"include long": {files: map[string]string{"compose.yaml": "include: [{path: [sub/b.yaml, sub/c.yaml], project_directory: " +
		"sub}]\nservices: {a: {image: x}}", "sub/b.yaml": "services: {b: {image: y}}", "sub/c.yaml": "services: {b: %}"}},
	"include far": {files: map[string]string{"compose.yaml": "include: [sub/b.yaml]", "sub/b.yaml": "include: [deep/c.yaml]",
		"sub/deep/c.yaml": "services: {c: %}"}},
	"include, extends": {files: map[string]string{"compose.yaml": "include: [sub/b.yaml]\nservices: {a: {extends: b}}",
		"sub/b.yaml": "services: {b: %}"}},
	"include merged": {files: map[string]string{"compose.yaml": "x-i: &i {include: [sub/b.yaml]}\n<<: *i\nservices: {a: {image: x}}",
		"sub/b.yaml": "services: {b: %}"}},
	"override": {files: map[string]string{"a.yaml": "services: {a: {image: y}}", "b.yaml": "services: {a: %}"},
		inputs: []string{"a.yaml", "b.yaml"}},
	"overridden": {files: map[string]string{"a.yaml": "services: {a: %}", "b.yaml": "services: {a: {tty: true}}"},
		inputs: []string{"a.yaml", "b.yaml"}},
	"override tag": {files: map[string]string{"a.yaml": "services: {a: {image: y, tty: true}}", "b.yaml": "services: {a: !override %}"},
		inputs: []string{"a.yaml", "b.yaml"}},
	"profile off": {files: map[string]string{"compose.yaml": "services: {a: {image: x}, b: {extends: c, profiles: [off]}, c: %}"}},
}

// However a service reaches the model, it is refused by the rule that refuses
// it in plain sight, and by no other.
func TestHidingChangesNothing(t *testing.T) {
	t.Parallel()
	for name, h := range hidings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for body, rule := range hostileBodies {
				files := map[string]string{"Dockerfile": "FROM scratch\n", "sub/Dockerfile": "FROM scratch\n", "sub/deep/Dockerfile": "FROM scratch\n"}
				for file, text := range h.files {
					files[file] = strings.ReplaceAll(text, "%", body) + "\n"
				}
				in := Input{Source: pack(t, files, map[string]string{"link": "sub"}), Files: h.inputs, SecretNames: []string{"TOKEN"}}
				p, err := Load(t.Context(), in)
				if err == nil {
					t.Errorf("%s passed: %+v", body, p.Compose.Services)
				} else if got := rulesOf(t, err); !slices.Equal(got, []string{rule}) {
					t.Errorf("%s: refused by %q, want %s:\n%v", body, got, rule, err)
				}
			}
		})
	}
}
