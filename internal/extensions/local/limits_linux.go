package local

import (
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/walls"
)

// Defaults for a profile without limits: enough for builds, and a bound on accidents.
const (
	defaultPids  = 4096
	defaultFiles = 16_384   // open files per program
	ownPids      = 48       // threads of the init, on top of the limit
	ownMemory    = 96 << 20 // of the init, on top of the limit
	initMemory   = 1 << 30  // what the init may map, on top of the limit it sets for the programs
	mib          = 1 << 20
)

// limits are what one sandbox may use, all set.
type limits struct {
	disk, memory, pids, cpu int64 // bytes, bytes, processes, thousandths of a CPU (0 = all)
	asked                   extensions.Resources
}

func planLimits(r extensions.Resources) (limits, error) {
	total := memoryTotal()
	l := limits{disk: total / 4, memory: total / 2, pids: defaultPids, asked: r}
	if r.GPU != nil {
		return l, extensions.Errorf(extensions.KindUnsupported, "resources.gpu: sandboxes on this machine get no GPU").
			WithRemedy("choose an extension that offers GPUs")
	}
	for _, f := range []struct {
		name  string
		asked *int64
		unit  int64
		to    *int64
	}{{"memory_mb", r.MemoryMB, mib, &l.memory}, {"disk_mb", r.DiskMB, mib, &l.disk}, {"pids", r.Pids, 1, &l.pids}} {
		if f.asked == nil {
			continue
		}
		if *f.asked <= 0 || *f.asked > 1<<40 {
			return l, extensions.Errorf(extensions.KindInvalid, "resources.%s: %d is out of range", f.name, *f.asked)
		}
		*f.to = *f.asked * f.unit
	}
	if r.CPU != nil {
		if *r.CPU <= 0 {
			return l, extensions.Errorf(extensions.KindInvalid, "resources.cpu: %d thousandths is out of range", *r.CPU)
		}
		l.cpu = int64(*r.CPU)
	}
	if l.disk > total {
		return l, extensions.Errorf(extensions.KindUnsupported,
			"resources.disk_mb: %d MiB do not fit; workspaces here are in memory, and the machine has %d MiB",
			l.disk/mib, total/mib).WithRemedy("lower disk_mb, or choose an extension with disks")
	}
	return l, nil
}

func (l limits) bounds() bounds {
	return bounds{memory: l.memory + l.disk + ownMemory, pids: l.pids + ownPids, cpu: l.cpu}
}

// enforced decides what else enforces the limits, once it is known which controllers hold. A limit that
// nothing enforces is refused, or named if the profile accepts best effort.
func (l limits) enforced(g cgroups, id extensions.ID, cfg *walls.Config) (unenforced []string, o filterOptions, err error) {
	refuse := func(name, why string) {
		if l.asked.BestEffort {
			unenforced = append(unenforced, name+": "+why)
		} else if err == nil {
			err = extensions.Errorf(extensions.KindUnsupported, "resources.%s cannot be enforced here: %s", name, why).
				WithRemedy("run as root or in a delegated cgroup, drop the limit, or set resources.best_effort: true")
		}
	}
	if g.dirs[cgMemory] == "" {
		o.noMemory = true
		if l.asked.MemoryMB != nil {
			refuse("memory_mb", "no memory cgroup is writable; sandboxer counts the programs' memory (PSS) and kills the largest when their sum "+
				"exceeds the limit")
		}
	}
	if cpus := affinity(); l.cpu > 0 && g.dirs[cgCPU] == "" && l.cpu < int64(len(cpus))*1000 {
		cfg.CPUs = pick(cpus, int((l.cpu+999)/1000), string(id))
		o.pinned = true
		if l.cpu%1000 != 0 {
			refuse("cpu", "no cpu cgroup is writable, so only whole CPUs can be assigned")
		}
	}
	cfg.DiskBytes = l.disk
	cfg.Inodes = min(max(l.disk/(8<<10), 16_384), 2_000_000)
	cfg.Limits = []walls.Limit{
		{Resource: unix.RLIMIT_NPROC, Value: uint64(l.pids + ownPids)},
		{Resource: unix.RLIMIT_DATA, Value: uint64(l.memory + initMemory)},
		{Resource: unix.RLIMIT_NOFILE, Value: defaultFiles},
		{Resource: unix.RLIMIT_CORE, Value: 0},
		{Resource: unix.RLIMIT_MEMLOCK, Value: 8 << 20},
	}
	return unenforced, o, err
}

func memoryTotal() int64 { return meminfo("MemTotal:") }

// meminfo returns one line of /proc/meminfo in bytes, or 0.
func meminfo(name string) int64 {
	b, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

func affinity() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var list []int
	for n := range len(set) * 64 {
		if set.IsSet(n) {
			list = append(list, n)
		}
	}
	return list
}

// pick takes n of the CPUs, starting at a different one for each sandbox.
func pick(cpus []int, n int, id string) []int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	list := make([]int, 0, n)
	for i := range min(n, len(cpus)) {
		list = append(list, cpus[(int(h.Sum32()%uint32(len(cpus)))+i)%len(cpus)])
	}
	return list
}
