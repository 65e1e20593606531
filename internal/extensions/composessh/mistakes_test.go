package composessh

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// What a stack has wrong and only Docker finds out is told as the stack's, with
// the service.
func TestMistakesOfAStackAreTheStacks(t *testing.T) {
	t.Parallel()
	const volume = "volumes: {dd: {}}"
	s := newSite(t)
	b := s.open(t)
	for _, c := range []struct {
		field, rest string
		kind        extensions.Kind
		remedy      string
	}{
		{"group_add: [nosuch]", "", extensions.KindInvalid, "group_add"},
		{"user: nosuch", "", extensions.KindInvalid, "user"},
		{"user: '0:nosuch'", "", extensions.KindInvalid, "user"},
		{"group_add: ['99999999999']", "", extensions.KindInvalid, "group_add"},
		{"volumes: ['dd:/proc/sys']", volume, extensions.KindInvalid, "/proc"},
		{"volumes: ['dd:/proc/self']", volume, extensions.KindInvalid, "/proc"},
		{"volumes: ['dd:/etc/passwd']", volume, extensions.KindInvalid, "folders on folders"},
		{"volumes: ['./page:/bin']", "", extensions.KindInvalid, "files on files"},
		{"volumes: ['dd:/']", volume, extensions.KindInvalid, "nothing on /"},
		{"tmpfs: [/proc/sys/x]", "", extensions.KindInvalid, "/proc"},
		{"tmpfs: [/proc]", "", extensions.KindInvalid, "/proc"},
		{"entrypoint: [/nope]", "", extensions.KindInvalid, "entrypoint"},
		{"entrypoint: [/etc/passwd]", "", extensions.KindInvalid, "cannot run it"},
		{"entrypoint: [/bin]", "", extensions.KindInvalid, "cannot run it"},
		{"entrypoint: [/etc/passwd/x]", "", extensions.KindInvalid, "entrypoint"},
		{"working_dir: /etc/passwd/x", "", extensions.KindInvalid, "working_dir"},
		{"working_dir: /bin/busybox", "", extensions.KindInvalid, "working_dir"},
		{"devices: [/dev/dri]", "", extensions.KindInvalid, "device"},
		{"sysctls: {net.ipv4.ip_unprivileged_port_start: abc}", "", extensions.KindInvalid, "sysctls"},
		{"ulimits: {nofile: {soft: 200, hard: 100}}", "", extensions.KindInvalid, "ulimits"},
		{"platform: linux/s390x", "", extensions.KindUnsupported, "architecture"},
		{"mem_limit: 1m", "", extensions.KindInvalid, "limits"},
		{"cpus: 1000", "", extensions.KindInvalid, "limits"},
		{"cpuset: '9999'", "", extensions.KindInvalid, "limits"},
		{"runtime: nosuch", "", extensions.KindUnsupported, "runtime"},
		{"stop_signal: NOPE", "", extensions.KindInvalid, "correct"},
		{"cap_drop: [NOSUCH]", "", extensions.KindInvalid, "correct"},
		{"healthcheck: {test: [CMD, 'true'], interval: 1us}", "", extensions.KindInvalid, "healthcheck"},
		{"depends_on: {db: {condition: service_healthy}}", "  db: {image: IMAGE, command: [sleep, '60']}\n", extensions.KindInvalid,
			"service_started"},
		{"post_start: [{command: ['false']}]", "", extensions.KindFailed, "post_start"},
	} {
		spec := s.stack(t, fmt.Sprintf("services:\n  web: {image: IMAGE, command: [sleep, '60'], %s}\n%s", c.field, c.rest),
			exttest.With(func(sp *extensions.Spec) {
				sp.Options = map[string]any{"allow": []any{"devices:/dev/dri", "runtime:nosuch"}}
			}))
		h, _, err := b.Provision(t.Context(), spec)
		s.tearDownAtEnd(t, spec.ID)
		if !extensions.IsKind(err, c.kind) || !strings.Contains(extensions.RemedyOf(err), c.remedy) {
			t.Errorf("%s: kind %s, remedy %q: %v", c.field, extensions.KindOf(err), extensions.RemedyOf(err), err)
		}
		if !strings.Contains(err.Error(), "the service web ") &&
			!slices.Contains([]string{"depends_on", "post_start"}, strings.Split(c.field, ":")[0]) {
			t.Errorf("%s: the service is not named: %v", c.field, err)
		}
		if strings.Count(err.Error(), "Error response from daemon") > 1 {
			t.Errorf("%s: it is said twice: %v", c.field, err)
		}
		if !h.IsZero() && c.kind == extensions.KindInvalid {
			t.Errorf("%s: something is said to be there: %s", c.field, h.Encode())
		}
	}
}

// What the host has wrong stays the host's, also where Docker's words are alike.
func TestWhatIsNotTheStacksMistakeIsNotCalledSo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]extensions.Kind{
		"Error response from daemon: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container " +
			"process: unable to apply cgroup configuration: mkdir /sys/fs/cgroup/x: device or resource busy": extensions.KindInternal,
		"Error response from daemon: error while mounting volume '/var/lib/docker/volumes/x/_data': no space left on device": extensions.KindExhausted,
		"Error response from daemon: failed to set up container networking: iptables failed":                                 extensions.KindInternal,
		"Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock":           extensions.KindUnauthorized,
		"Error response from daemon: pull access denied for x, repository does not exist or may require 'docker login': denied: requested " +
			"access to the resource is denied": extensions.KindUnsupported,
		"Error response from daemon: Head \"https://ghcr.io/v2/x/manifests/latest\": denied: denied": extensions.KindUnauthorized,
	} {
		if kind, _ := ofDocker(text); kind != want {
			t.Errorf("%s: %s, want %s", text, kind, want)
		}
	}
}
