package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// moreBodies are services, each refused by one rule.
var moreBodies = map[string]string{
	// What newer versions of Compose and the engine brought.
	"{image: x, gpus: [{driver: nvidia, count: 1}]}": "gpus", "{image: x, models: [m]}": "models",
	"{image: x, models: {m: {endpoint_var: X}}}":                               "models",
	"{provider: {type: model, options: {a: b}}}":                               "provider",
	"{image: x, pre_stop: [{command: x, privileged: 'true'}]}":                 "hook-privileged",
	"{image: x, pre_stop: [{command: x, user: '0 --privileged'}]}":             "user",
	"{image: x, volumes: [{type: image, source: y, target: /x}]}":              "volume-type",
	"{image: x, volumes: [{type: cluster, source: y, target: /x}]}":            "volume-type",
	"{image: x, volumes: [{type: npipe, source: y, target: /x}]}":              "volume-type",
	"{image: x, networks: {default: {interface_name: 'eth0;x'}}}":              "schema",
	"{image: x, networks: {default: {link_local_ips: [169.254.1.1]}}}":         "ip-address",
	"{image: x, networks: {default: {mac_address: '02:42:ac:11:65:43'}}}":      "mac-address",
	"{image: x, networks: {default: {aliases: [sandboxer-proxy]}}}":            "reserved-name",
	"{image: x, devices: ['vendor.com/class=name']}":                           "devices",
	"{image: x, devices: [{source: /dev/sda, target: /dev/fuse}]}":             "devices",
	"{image: x, deploy: {mode: replicated-job}}":                               "deploy-swarm",
	"{image: x, deploy: {endpoint_mode: vip}}":                                 "deploy-swarm",
	"{image: x, deploy: {labels: {sandboxer.id: x}}}":                          "label-reserved",
	"{image: x, deploy: {replicas: 9999}}":                                     "scale",
	"{image: x, blkio_config: {device_read_bps: [{path: /dev/sda, rate: 1}]}}": "blkio",
	"{image: x, isolation: hyperv}":                                            "windows-only",
	"{image: x, credential_spec: {registry: x}}":                               "credential-spec",
	"{image: x, cpu_rt_runtime: 100}":                                          "cpu-realtime",
	// What is written differently.
	"{image: x, privileged: 'yes'}": "privileged", "{image: x, privileged: !override true}": "privileged",
	"{image: x, privileged: !!binary dHJ1ZQ==}": "yaml",
	"{image: x, !reset privileged: true}":       "privileged", "{image: x, <<: [{privileged: true}]}": "privileged",
	"{image: x, profiles: ['*'], privileged: true}": "privileged",
	"{image: x, command: !!python/object x}":        "yaml", "{image: x, image: y}": "yaml",
	"{image: x, network_mode: ' host'}": "host-network", "{image: x, network_mode: Host}": "host-network",
	"{image: x, network_mode: bridge}":   "network-mode",
	"{image: x, network_mode: someones}": "network-mode", "{image: x, network_mode: 'ns:/proc/1/ns/net'}": "network-mode",
	"{image: x, network_mode: 'service:b'}": "network-mode",
	"{image: x, pid: ' host'}":              "host-pid", "{image: x, ipc: 'host '}": "host-ipc", "{image: x, uts: HOST}": "host-uts",
	"{image: x, userns_mode: keep-id}": "host-userns",
	"{image: x, pid: 'service:b'}":     "namespace-service", "{image: x, cgroup: Host}": "schema",
	"{image: x, cap_add: [cap_sys_admin]}": "cap-add", "{image: x, cap_add: [' ALL']}": "cap-add",
	"{image: x, labels: {SandBoxer.ID: x}}": "label-reserved", "{image: x, labels: {' sandboxer.id': x}}": "label-reserved",
	"{image: x, labels: ['sandboxer.account']}":               "label-reserved",
	"{image: x, labels: {com.docker.compose.oneoff: 'True'}}": "label-reserved",
	"{image: x, security_opt: ['seccomp:unconfined']}":        "security-opt",
	"{image: x, security_opt: ['systempaths=unconfined']}":    "security-opt",
	"{image: x, security_opt: ['no-new-privileges=0']}":       "security-opt", "{image: x, security_opt: ['label=disable']}": "security-opt",
	"{image: x, sysctls: {net/ipv4/conf/all/route_localnet: 1}}": "sysctls",
	"{image: x, extra_hosts: ['h=host-gateway']}":                "host-gateway",
	"{image: x, extra_hosts: ['h:HOST-GATEWAY']}":                "host-gateway",
	"{image: x, extra_hosts: {h: [host-gateway, 1.1.1.1]}}":      "host-gateway",
	"{image: x, links: ['container:other']}":                     "links", "{image: x, links: ['other:db']}": "links",
	"{image: x, volumes_from: [other]}": "volumes-from",
	"{image: x, dns_opt: [use-vc]}":     "dns", "{image: x, dns_search: [corp]}": "dns",
	// Mounts.
	"{image: x, volumes: [{type: volume, source: data, target: /x, volume: {subpath: ../../etc}}]}": "mount-path",
	"{image: x, volumes: [{type: volume, target: /y, volume: {labels: {sandboxer.id: y}}}]}":        "label-reserved",
	"{image: x, volumes: [{type: volume, source: /etc, target: /x}]}":                               "bind-outside",
	"{image: x, volumes: ['/proc/self/root:/x']}":                                                   "bind-outside",
	"{image: x, volumes: ['~/x:/x']}":                                                               "bind-outside",
	"{image: x, volumes: [{type: bind, source: './x:ro', target: /y}]}":                             "mount-path",
	"{image: x, volumes: ['.:/x:rshared']}":                                                         "bind-propagation",
	"{image: x, volumes: [{type: bind, source: ., target: /x, bind: {recursive: readonly}}]}":       "bind-propagation",
	"{image: x, tmpfs: ['/x:exec,suid,dev']}":                                                       "tmpfs",
	"{image: x, tmpfs: ['/x:size=1k,bogus']}":                                                       "tmpfs",
	"{image: x, volumes: ['$PWD:/x']}":                                                              "interpolate-environment",
	// Builds.
	"{build: {context: ., additional_contexts: {x: 'docker-image://y'}}}": "build-remote",
	"{build: {context: ., secrets: [s]}}":                                 "build-secret",
	"{build: {context: ., entitlements: [security.insecure]}}":            "build-privileged",
	"{build: {context: ., cache_to: ['type=local,dest=/etc']}}":           "build-cache",
	"{build: {context: ., tags: ['nginx:latest']}}":                       "build-tags", "{build: {context: ., extra_hosts: ['h:host-gateway']}}": "host-gateway",
	"{build: {context: ., network: 'container:x'}}": "build-network", "{build: {context: ., target: '--push'}}": "build-target",
	"{build: {context: ., ulimits: {nofile: -1}}}": "ulimits", "{build: {context: ., ssh: ['default=/root/.ssh/id']}}": "build-ssh",
	// Arguments of commands, and what fills the host.
	"{image: '--privileged'}": "image-name", "{image: x, platform: 'linux/amd64 --x'}": "platform", "{image: x, user: 'root -v /:/h'}": "user",
	"{image: 'sha256:0123abcd'}": "image-name", "{image: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}": "image-name",
	"{image: x, logging: {driver: json-file, options: {max-size: -1}}}": "logging",
	"{image: x, logging: {driver: local, options: {path: /etc}}}":       "logging",
	"{image: x, logging: {driver: none}}":                               "logging", "{image: x, stop_grace_period: 24h}": "stop-grace",
	"{image: x, shm_size: 1t}":          "shm-size",
	"{image: x, ulimits: {rtprio: 99}}": "ulimits", "{image: x, ulimits: {nofile: {soft: 1, hard: -1}}}": "ulimits",
	"{image: x, pull_policy: 'every_1s; id'}": "schema",
	"{image: x, expose: ['1-65535']}":         "port-range", "{image: x, container_name: sandboxer-proxy}": "reserved-name",
	// From elsewhere.
	"{extends: {file: 'oci://x/y', service: b}}": "extends-remote", "{extends: {file: 'git@h:x.git', service: b}}": "extends-remote",
	"{image: x, env_file: [{path: /etc/passwd, format: raw}]}": "env-file-outside",
}

// moreStacks are whole files, each refused by one rule.
var moreStacks = map[string]string{
	"include: ['oci://x/y']": "include-remote", "include: [{path: c.yaml, env_file: /etc/environment}]": "env-file-outside",
	"include: [{path: c.yaml, project_directory: /etc}]":                                                                   "include-outside",
	"include: [{path: c.yaml, project_directory: ..}]":                                                                     "include-outside",
	"services: {a: {image: x, networks: [n]}}\nnetworks: {n: {driver_opts: {com.docker.network.bridge.name: docker0}}}":    "driver-opts",
	"services: {a: {image: x, networks: [n]}}\nnetworks: {n: {driver: host}}":                                              "network-driver",
	"services: {a: {image: x, networks: [n]}}\nnetworks: {n: {external: {name: bridge}}}":                                  "external-network",
	"services: {a: {image: x, networks: [n]}}\nnetworks: {n: {ipam: {driver: dhcp}}}":                                      "ipam",
	"services: {a: {image: x, networks: [n]}}\nnetworks: {n: {labels: {sandboxer.id: x}}}":                                 "label-reserved",
	"services: {a: {image: x, volumes: ['data:/v']}}\nvolumes: {data: {driver_opts: {type: none, o: bind, device: /etc}}}": "driver-opts",
	"services: {a: {image: x, volumes: ['data:/v']}}\nvolumes: {data: {driver: nfs}}":                                      "volume-driver",
	"services: {a: {image: x}}\nvolumes: {unused: {driver_opts: {type: none, o: bind, device: /etc}}}":                     "driver-opts",
	"services: {a: {image: x, configs: [c]}}\nconfigs: {c: {content: 'hi $HOME'}}":                                         "interpolate-environment",
	"services: {a: {image: x, configs: [c]}}\nconfigs: {c: {content: a, template_driver: golang}}":                         "driver-opts",
	"services: {a: {image: x, secrets: [c]}}\nsecrets: {c: {environment: AWS_SECRET_ACCESS_KEY}}":                          "interpolate-environment",
	"services: {a: {image: x, secrets: [c]}}\nsecrets: {c: {file: /root/.ssh/id_rsa}}":                                     "secret-outside",
	"services: {a: {image: x}}\nmodels: {m: {model: ai/x}}":                                                                "models",
	"services: {a: {image: x}, a: {image: x}}":                                                                             "yaml",
	"services: {a: {image: x}}\n---\nservices: {b: {image: x}}":                                                            "yaml",
	"x-a: &a {b: *a}\nservices: {a: {image: x}}":                                                                           "too-large",
	"x-a: &a [x,x,x,x,x,x,x,x,x,x]\nx-b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nx-c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nx-d: &d " +
		"[*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\nx-e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nx-f: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\nservices: {a: {image: x}}": "too-large",
	"version: '2'\na: {image: x, privileged: true}": "schema", "services: {'../a': {image: x}}": "schema",
	"services: {SANDBOXER-proxy: {image: x}}": "reserved-name",
}

func TestMoreHostileStacksAreRefusedByTheirRule(t *testing.T) {
	t.Parallel()
	all := map[string]string{}
	for body, rule := range moreBodies {
		all["services:\n  b: {image: x}\n  a: "+body+"\nvolumes: {data: {}}\n"] = rule
	}
	for text, rule := range moreStacks {
		all[text+"\n"] = rule
	}
	for text, rule := range all {
		files := map[string]string{"compose.yaml": text, "Dockerfile": "FROM scratch\n", "c.yaml": "services: {c: {image: x}}\n"}
		_, err := Load(t.Context(), Input{Source: pack(t, files, nil), Deny: true})
		if err == nil {
			t.Errorf("passed, want %s: %s", rule, text)
		} else if got := rulesOf(t, err); !slices.Equal(got, []string{rule}) {
			t.Errorf("refused by %q, want %s: %s\n%v", got, rule, text, err)
		}
	}
}

// What passes and could be meant badly has no trace in what the host gets.
func TestWhatPassesIsRenderedHarmless(t *testing.T) {
	t.Parallel()
	for text, gone := range map[string]string{
		"services: {a: {image: x, develop: {watch: [{path: /etc, action: sync, target: /x}]}}}":           "watch",
		"services: {a: {image: x, x-podman: {privileged: true}}}\nx-podman: {pod_args: ['--privileged']}": "privileged",
		"services: {a: {image: x, restart: always, deploy: {restart_policy: {condition: any}}}}":          "restart",
		"services: {a: {image: x, pids_limit: -1}}":                                                       `"pids_limit":-1`,
		"services: {a: {image: x, deploy: {resources: {limits: {pids: -1}}}}}":                            `"pids":-1`,
		"services: {a: {image: x, networks: [n]}}\nnetworks: {n: {name: bridge, enable_ipv6: true}}":      `"name":"bridge"`,
		"services: {a: {image: x, networks: [n]}}\nnetworks: {n: {enable_ipv6: true, internal: false}}":   `"enable_ipv6":true`,
		"services: {a: {image: x, volumes: ['data:/v']}}\nvolumes: {data: {name: somebodys}}":             "somebodys",
		"name: docker\nservices: {a: {image: x, container_name: dockerd}}":                                "dockerd",
		"services: {a: {image: x, pull_policy: always}}":                                                  "always",
		"services: {a: {image: x, ports: ['0.0.0.0:22:22']}}":                                             "0.0.0.0",
		"services: {a: {build: {context: ., args: [HOME], provenance: 'x', sbom: 'generator=evil'}}}":     "evil",
		"services: {a: {image: x, env_file: [{path: ./absent, required: false}]}}":                        "absent",
		"services: {a: {image: x, privileged: !reset true}}":                                              "privileged",
		"services: {a: {image: beef}}":                                                                    `"beef"`,
	} {
		files := map[string]string{"compose.yaml": text + "\n", "Dockerfile": "FROM scratch\n"}
		p, err := Load(t.Context(), Input{Source: pack(t, files, nil), Deny: true})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		r, err := p.Render(withDefaults(RenderOptions{Network: NetworkDeny}))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if strings.Contains(strings.ReplaceAll(string(r.Model), `": `, `":`), gone) {
			t.Errorf("%s: %q is in what the host gets: %s", text, gone, r.Model)
		}
	}
}

// A name that the engine could take for the beginning of an image's id is told
// as a name, everywhere: the image could be another sandbox's.
func TestAnImageIsNeverNamedByID(t *testing.T) {
	t.Parallel()
	files := map[string]string{"compose.yaml": "services: {a: {image: 3f}, b: {build: .}, c: {image: 'nginx'}}\n",
		"Dockerfile": "FROM cafe AS x\nFROM 12\nCOPY --from=fed / /\n"}
	p, err := Load(t.Context(), Input{Source: pack(t, files, nil)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Render(withDefaults(RenderOptions{Network: NetworkAllow}))
	if err != nil {
		t.Fatal(err)
	}
	if want := []Pull{{Image: "3f:latest"}, {Image: "nginx"}}; !slices.Equal(r.Pulls, want) ||
		!strings.Contains(string(r.Model), `"3f:latest"`) {
		t.Errorf("pulls %+v\n%s", r.Pulls, r.Model)
	}
	if want := []Base{{Image: "cafe:latest"}, {Image: "12:latest"}, {Image: "fed:latest"}}; len(r.Builds) != 1 ||
		!slices.Equal(r.Builds[0].Bases, want) {
		t.Errorf("builds %+v", r.Builds)
	}
	id := strings.Repeat("0123456789abcdef", 4)
	for _, text := range []string{"FROM " + id, "FROM sha256:" + id, "FROM sha256:0123", "FROM a\nCOPY --from=sha256:0123 / /"} {
		if _, got := judged(t, text, RenderOptions{Network: NetworkAllow}); len(got) != 1 || got[0] != "dockerfile" && got[0] != "build-fetch" {
			t.Errorf("%s: %q", text, got)
		}
	}
	for _, ref := range []string{id, "sha256:0123", "--all", "a b"} {
		if _, err := FromImage(t.Context(), extensions.Image{Pull: ref}, nil); err == nil ||
			!slices.Equal(rulesOf(t, err), []string{"image-name"}) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// Claims that are no amount, or more than a number holds, lift no limit.
func TestNoClaimLiftsTheLimits(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"{image: x, deploy: {resources: {limits: {cpus: '-1'}}}}", "{image: x, cpus: -0.5}",
		"{image: x, deploy: {resources: {limits: {cpus: '1e30'}}}}", "{image: x, deploy: {resources: {limits: {cpus: 'NaN'}}}}",
		"{image: x, mem_limit: -1}", "{image: x, deploy: {resources: {limits: {memory: -5}}}}",
		"{image: x, scale: 4, mem_limit: 4611686018427387904}",
		"{image: x, scale: 4, pids_limit: 4611686018427387904}",
		"{image: x, scale: 16, deploy: {resources: {limits: {memory: 1152921504606846976}}}}",
	} {
		for _, best := range []bool{false, true} {
			p, err := Load(t.Context(), Input{Source: pack(t, map[string]string{"compose.yaml": "services:\n  a: " + body + "\n"}, nil), Deny: true})
			if err != nil {
				continue // no amount in the eyes of the loader
			}
			res := resources(512, 1000, 100)
			res.BestEffort = best
			r, err := p.Render(withDefaults(RenderOptions{Network: NetworkDeny, Resources: res}))
			if err != nil {
				if !extensions.IsKind(err, extensions.KindInvalid) {
					t.Errorf("%s: %v", body, err)
				}
				continue
			}
			back, err := reloaded(r, nil)
			if err != nil {
				t.Errorf("%s: %v", body, err)
				continue
			}
			s := back.Services["a"]
			if s.MemLimit <= 0 || s.MemLimit > 512<<20 || s.CPUS <= 0 || s.CPUS > 1 || s.PidsLimit <= 0 || s.PidsLimit > 100 {
				t.Errorf("%s, best effort %v: memory %d, cpus %f, pids %d", body, best, s.MemLimit, s.CPUS, s.PidsLimit)
			}
		}
	}
}

// The grant of accelerators is none of other devices.
func TestGrantedAcceleratorsAreNoOtherDevices(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		"{image: x, gpus: [{driver: nvidia, count: 1}]}":                                                                            nil,
		"{image: x, gpus: [{driver: cdi, device_ids: ['vendor.com/disk=0']}]}":                                                      {"devices"},
		"{image: x, deploy: {resources: {reservations: {devices: [{driver: CDI, capabilities: [gpu], device_ids: ['a.b/c=d']}]}}}}": {"devices"},
	} {
		_, err := Load(t.Context(), Input{Source: pack(t, map[string]string{"compose.yaml": "services:\n  a: " + body + "\n"}, nil), Deny: true,
			Allow: []string{"gpus"}})
		var got []string
		if err != nil {
			got = rulesOf(t, err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q: %v", body, got, want, err)
		}
	}
}
