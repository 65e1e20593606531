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

// holding says what enforces a sandbox's limits here, and which layers and limits it lacks.
func holding(bx box) []string {
	var notes []string
	rec, err := bx.read()
	if err != nil {
		return nil
	}
	if rec.Mode == modeBubblewrap {
		notes = append(notes, "bubblewrap builds the walls because this user may not create user namespaces; read-only workspaces need them")
	}
	const help = "; run as root or in a delegated cgroup"
	if rec.Memory == memoryByCounting {
		notes = append(notes, "no memory cgroup is writable: the kernel cannot enforce memory_mb; sandboxer counts the programs' memory (PSS) "+
			"and limits it on best effort"+help)
	} else {
		notes = append(notes, "the kernel enforces memory_mb ("+rec.Memory+")")
	}
	if planCgroups(string(bx.id)).dirs[cgCPU] == "" {
		notes = append(notes, "no cpu cgroup is writable: fractions of cpu cannot be enforced"+help)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno != 0 {
		notes = append(notes, "this kernel lacks Landlock, the second layer: programs may lower their oom_score_adj to sandboxer's")
	}
	return notes
}
