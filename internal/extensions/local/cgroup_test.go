//go:build linux

package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeCgroups lays out a tree of version 2 as the kernel would show it.
func fakeCgroups(t *testing.T, files map[string]string) (top, mountinfo string) {
	t.Helper()
	top = t.TempDir()
	for name, text := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(top, name), []byte(text), 0o600))
	}
	return top, "30 24 0:27 / " + top + " rw,nosuid - cgroup2 cgroup2 rw\n"
}

func TestWhereTheUnifiedHierarchyTakesASandbox(t *testing.T) {
	t.Parallel()
	const id, all = "sbx-x", "cpu memory pids\n"
	for what, c := range map[string]struct {
		own   string // as proc_pid_cgroup(5) says it
		files map[string]string
		want  map[string]string // controller: folder below the top
	}{
		"beside our own": {"0::/user/app\n", map[string]string{"user/cgroup.subtree_control": all, "user/cgroup.procs": "",
			"user/app/cgroup.procs": ""},
			map[string]string{cgMemory: "user", cgPids: "user", cgCPU: "user"}},
		"below the root of all, where we are ourselves": {"0::/\n", map[string]string{"cgroup.subtree_control": all, "cgroup.procs": ""},
			map[string]string{cgMemory: "", cgPids: "", cgCPU: ""}},
		"what is handed down only": {"0::/user/app\n",
			map[string]string{"user/cgroup.subtree_control": "pids\n", "user/cgroup.procs": "", "user/app/cgroup.procs": ""},
			map[string]string{cgPids: "user"}},
		"nothing to move processes by": {"0::/user/app\n", map[string]string{"user/cgroup.subtree_control": all, "user/app/cgroup.procs": ""},
			nil},
	} {
		top, mountinfo := fakeCgroups(t, c.files)
		g := planBelow(mountinfo, ownCgroups(c.own), id)
		if len(g.dirs) != len(c.want) {
			t.Errorf("%s: %v", what, g.dirs)
		}
		for controller, parent := range c.want {
			if want := filepath.Join(top, parent, "sandboxer-"+id); g.dirs[controller] != want || !g.v2 {
				t.Errorf("%s: %s at %q, not %q", what, controller, g.dirs[controller], want)
			}
		}
	}
}

func TestAMemoryCgroupHoldsIfItTakesTheBoundAndTellsWhatItCounts(t *testing.T) {
	t.Parallel()
	const dir = "sandboxer-sbx-x"
	for by, stat := range map[string]string{memoryByKernel2: dir + "/memory.stat", memoryByCounting: dir + "/other"} {
		_, mountinfo := fakeCgroups(t, map[string]string{"cgroup.subtree_control": "memory", "cgroup.procs": "", stat: "anon 1\n",
			dir + "/memory.max": "max\n", dir + "/memory.swap.max": "max\n"})
		g := planBelow(mountinfo, ownCgroups("0::/\n"), "sbx-x")
		path := g.dirs[cgMemory]
		g.create(bounds{memory: 5 << 20})
		t.Cleanup(g.close)
		if got := g.memoryBy(); got != by {
			t.Errorf("memory is bounded by %q, not by %q", got, by)
		}
		for name, want := range map[string]string{"memory.max": "5242880", "memory.swap.max": "0"} {
			if got, err := os.ReadFile(filepath.Join(path, name)); err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
	}
}
