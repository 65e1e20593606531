package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/stage"
)

// The controllers that limits need.
const (
	cgMemory = "memory"
	cgPids   = "pids"
	cgCPU    = "cpu"
)

// cgroups are the folders of one sandbox, by controller. Version 2 has one folder for all.
type cgroups struct {
	v2     bool
	dirs   map[string]string
	memory *os.File // memory.stat of the folder, once created
}

// planCgroups names the folders to try for the sandbox. Only creating them later shows which limits hold.
func planCgroups(id string) cgroups {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	own, _ := os.ReadFile("/proc/self/cgroup")
	return planBelow(string(mounts), ownCgroups(string(own)), id)
}

// planBelow plans from the text of proc_pid_mountinfo(5) and our own cgroups.
func planBelow(mountinfo string, own map[string]string, id string) cgroups {
	g := cgroups{dirs: map[string]string{}}
	unified, top := "", ""
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		dash := slices.Index(f, "-")
		if dash < 6 || dash+3 >= len(f) {
			continue
		}
		root, mount, options := f[3], f[4], strings.Split(f[dash+3], ",")
		switch f[dash+1] {
		case "cgroup2":
			unified, top = below(mount, root, own[""]), mount
		case "cgroup":
			for _, c := range []string{cgMemory, cgPids, cgCPU} {
				if parent := below(mount, root, own[c]); slices.Contains(options, c) && writable(parent) {
					g.dirs[c] = filepath.Join(parent, "sandboxer-"+id)
				}
			}
		}
	}
	if len(g.dirs) == 0 && unified != "" {
		g.planUnified(unified, top, id)
	}
	return g
}

// planUnified picks a sibling of our own cgroup, since version 2 allows programs in leaves only, with the
// controllers its parent hands down. The root is the exception: there programs and cgroups lie side by side.
func (g *cgroups) planUnified(own, top, id string) {
	parent := filepath.Dir(own)
	if own == top {
		parent = own
	}
	b, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
	// Moving a process also writes to the cgroup above both places.
	if err != nil || !writable(parent) || !writable(filepath.Join(parent, "cgroup.procs")) {
		return
	}
	g.v2 = true
	for _, c := range strings.Fields(string(b)) {
		if slices.Contains([]string{cgMemory, cgPids, cgCPU}, c) {
			g.dirs[c] = filepath.Join(parent, "sandboxer-"+id)
		}
	}
}

// ownCgroups reads proc_pid_cgroup(5): the path by controller, "" for version 2.
func ownCgroups(text string) map[string]string {
	own := map[string]string{}
	for line := range strings.Lines(text) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			for c := range strings.SplitSeq(f[1], ",") {
				own[c] = f[2]
			}
		}
	}
	return own
}

func below(mount, root, path string) string {
	full := filepath.Join(mount, strings.TrimPrefix(path, strings.TrimSuffix(root, "/")))
	if _, err := os.Stat(full); err != nil {
		return mount
	}
	return full
}

func writable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }

func (g cgroups) paths() []string {
	var list []string
	for _, d := range g.dirs {
		if !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	slices.Sort(list)
	return list
}

// bounds are in bytes, processes and thousandths of a CPU; 0 = none.
type bounds struct {
	memory, pids, cpu int64
}

// create makes the folders and writes the bounds. It drops a controller that refuses from g: its bound does
// not hold.
func (g *cgroups) create(b bounds) {
	for c, dir := range g.dirs {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			delete(g.dirs, c)
			continue
		}
		err := g.set(c, dir, b)
		if c == cgMemory && err == nil {
			g.memory, err = os.Open(filepath.Join(dir, "memory.stat"))
		}
		if err != nil {
			delete(g.dirs, c)
		}
	}
}

// What bounds the memory of programs, as a record names it.
const (
	memoryByKernel1  = "memory cgroup, version 1"
	memoryByKernel2  = "memory cgroup, version 2"
	memoryByCounting = "counting"
)

func (g cgroups) memoryBy() string {
	switch {
	case g.dirs[cgMemory] == "":
		return memoryByCounting
	case g.v2:
		return memoryByKernel2
	}
	return memoryByKernel1
}

func (g cgroups) close() {
	if g.memory != nil {
		_ = g.memory.Close()
	}
}

const cpuPeriod = 100_000 // microseconds, the kernel's default

func (g cgroups) set(controller, dir string, b bounds) error {
	put := func(name string, v int64) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(strconv.FormatInt(v, 10)), 0)
	}
	switch {
	case controller == cgPids && b.pids > 0:
		return put("pids.max", b.pids)
	case controller == cgMemory && b.memory > 0 && g.v2:
		_ = put("memory.swap.max", 0) // absent without swap
		return put("memory.max", b.memory)
	case controller == cgMemory && b.memory > 0:
		err := put("memory.limit_in_bytes", b.memory)
		_ = put("memory.memsw.limit_in_bytes", b.memory) // absent without swap accounting
		return err
	case controller == cgCPU && b.cpu > 0 && g.v2:
		return os.WriteFile(filepath.Join(dir, "cpu.max"), []byte(strconv.FormatInt(b.cpu*cpuPeriod/1000, 10)+" "+strconv.Itoa(cpuPeriod)), 0)
	case controller == cgCPU && b.cpu > 0:
		_ = put("cpu.cfs_period_us", cpuPeriod)
		return put("cpu.cfs_quota_us", max(b.cpu*cpuPeriod/1000, 1000))
	}
	return nil
}

// place moves the process in before it has started anything.
func (g cgroups) place(pid int) error {
	for _, dir := range g.paths() {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return err
		}
	}
	return nil
}

func removeCgroups(dirs []string) error { return stage.RemoveCgroups(dirs) }
