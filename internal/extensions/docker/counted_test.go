package docker

import (
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

const devices = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       3    0    0    0     0          0         0      100       3    0    0    0     0       0          0
  eth0:     290       3    0    0    0     0          0         0     4096      31    0    0    0     0       0          0
eth1:1000000000000  3    0    0    0     0          0         0 1000000000000   31    0    0    0     0       0          0
`

func TestWhatAKernelCountsForAContainer(t *testing.T) {
	t.Parallel()
	const id, other = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "fedcba9876543210"
	const unit = "system.slice/docker-" + id + ".scope"
	for name, x := range map[string]struct {
		groups string
		files  map[string]string
		want   time.Duration // -1 = the engine has to be asked
	}{
		"version 1": {"8:pids:/docker/" + id + "\n2:cpuacct:/docker/" + id + "\n1:cpu:/docker/" + id + "\n0::/docker/" + id + "\n",
			map[string]string{"cpuacct/docker/" + id + "/cpuacct.usage": "30211576\n"}, 30211576},
		"version 1, two controllers in one": {"4:cpu,cpuacct:/docker/" + id + "\n",
			map[string]string{"cpu,cpuacct/docker/" + id + "/cpuacct.usage": "7\n"}, 7},
		"version 2": {"0::/" + unit + "\n",
			map[string]string{unit + "/cpu.stat": "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n"}, 1500 * time.Microsecond},
		"version 2, divided by a program inside": {"0::/" + unit + "/init.scope\n",
			map[string]string{unit + "/cpu.stat": "user_usec 1\nusage_usec 2\n", unit + "/init.scope/cpu.stat": "usage_usec 1\n"}, 2 * time.Microsecond},
		"another container's process": {"0::/system.slice/docker-" + other + ".scope\n",
			map[string]string{"system.slice/docker-" + other + ".scope/cpu.stat": "usage_usec 1\n"}, -1},
		"no container's process":   {"0::/user.slice\n", map[string]string{"user.slice/cpu.stat": "usage_usec 1\n"}, -1},
		"seen from another group":  {"0::/../../" + unit + "\n", map[string]string{"cpu.stat": "usage_usec 1\n"}, -1},
		"no number":                {"0::/" + unit + "\n", map[string]string{unit + "/cpu.stat": "usage_usec many\n"}, -1},
		"nothing of the processor": {"0::/" + unit + "\n", map[string]string{unit + "/memory.stat": "usage_usec 1\n"}, -1},
		"nothing at all":           {"", nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{"proc/7/net/dev": {Data: []byte(devices)}}
			if x.groups != "" {
				files["proc/7/cgroup"] = &fstest.MapFile{Data: []byte(x.groups)}
			}
			for at, text := range x.files {
				files["sys/fs/cgroup/"+at] = &fstest.MapFile{Data: []byte(text)}
			}
			got, ok := counted(files, 7, id)
			if want := (counts{x.want, 1000000004096}); ok != (x.want >= 0) || ok && got != want {
				t.Errorf("%+v, %t, not %+v", got, ok, want)
			}
			if _, ok := counted(files, 8, id); ok {
				t.Error("a process that does not exist is counted")
			}
		})
	}
}

// An engine that needs a second for its answer is not asked where this machine's kernel has it.
func TestTheKernelCountsAsTheEngineDoes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, _ := s.provision(t, b, exttest.With(func(spec *extensions.Spec) { spec.Network.Default = "allow" }))
	found, err := b.look(t.Context(), h.ID)
	must(t, err)
	id := found.agent().ID
	r, err := b.engine.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	must(t, err)
	_, err = b.Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"sh", "-c", `
		i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done
		ping -c 1 -W 1 192.0.2.1 || wget -T 1 -O /dev/null http://192.0.2.1 || true`}})
	must(t, err)
	before, err := b.told(t.Context(), id)
	must(t, err)
	got, ok := counted(os.DirFS("/"), r.Container.State.Pid, id)
	after, err := b.told(t.Context(), id)
	must(t, err)
	if !ok || before.cpu <= 0 || got.cpu < before.cpu || got.cpu > after.cpu || got.sent < before.sent || got.sent > after.sent {
		t.Errorf("%+v, %t, between %+v and %+v", got, ok, before, after)
	}
	s.gate.answerInstead("/stats", `{"cpu_stats":{"cpu_usage":{"total_usage":86400000000000}}}`)
	u, err := b.Usage(t.Context(), h)
	if err != nil || u.CPUMillis == nil || *u.CPUMillis < got.cpu.Milliseconds() || *u.CPUMillis >= 86_400_000 {
		t.Errorf("%+v, %v: it used %s", u, err, got.cpu)
	}
}
