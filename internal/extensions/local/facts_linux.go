package local

import (
	"os"

	"golang.org/x/sys/unix"
)

func memoryMB() int64 { return memoryTotal() / mib }

func freeMemoryMB() *int64 {
	n := meminfo("MemAvailable:") / mib
	if n == 0 {
		return nil
	}
	return &n
}

func freeDiskMB(dir string) int64 {
	var s unix.Statfs_t
	for range 2 {
		if unix.Statfs(dir, &s) == nil {
			return int64(float64(s.Bavail) * float64(s.Bsize) / mib) // the types differ between processors
		}
		dir = os.TempDir()
	}
	return 0
}

// missing says which layers and limits a sandbox here does without.
func missing(bx box) []string {
	var notes []string
	rec, err := bx.read()
	if err != nil {
		return nil
	}
	if rec.Mode == modeBubblewrap {
		notes = append(notes, "walls are built by bubblewrap, since user namespaces are closed to this user; read-only workspaces need them open")
	}
	for c, what := range map[string]string{cgMemory: "memory_mb", cgCPU: "fractions of cpu"} {
		if dir := planCgroups(string(bx.id)).dirs[c]; dir == "" {
			notes = append(notes, "no "+c+" cgroup is writable: "+what+" cannot be enforced; run as root or in a delegated cgroup")
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno != 0 {
		notes = append(notes, "Landlock, the second layer, is missing in this kernel")
	}
	return notes
}
