package initd

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/walls"
)

// giveUp drops from this thread what programs must not have.
func (p *procs) giveUp() error {
	if !p.cfg.Walls {
		return nil
	}
	return walls.SealProc(walls.Config{Access: p.cfg.Access})
}

// confine gives a program that has just started what its descendants inherit: the bound on processes, with a
// reserve for ourselves so that we can always go on, the bound on memory, and the first place when the kernel
// looks for memory.
func (p *procs) confine(pid int) {
	if !p.cfg.Walls {
		return
	}
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("1000"), 0)
	if m := uint64(p.cfg.Memory); m > 0 {
		_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: m, Max: m}, nil)
	}
	if p.cfg.Pids == 0 {
		return
	}
	own, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	n := uint64(p.cfg.Pids) + uint64(len(own)) // the kernel counts our threads too
	_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n}, nil)
}
