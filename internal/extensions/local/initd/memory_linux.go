package initd

import (
	"cmp"
	"slices"
	"syscall"
	"time"
)

const (
	// watchEvery is how often the memory of programs is checked.
	watchEvery = 200 * time.Millisecond
	// lookAgain is how long after a first look a second one decides. A program that starts another one
	// briefly counts twice, with all it holds.
	lookAgain = 30 * time.Millisecond
)

// watchMemory kills the largest program when all of them together exceed the bound. If a cgroup enforces a
// bound, the kernel's covers programs and files together; otherwise this is a bound on accidents.
func (s *server) watchMemory() {
	s.folders = ownFolders(s.cfg)
	for {
		time.Sleep(watchEvery)
		if s.memoryLeft() {
			continue
		}
		time.Sleep(lookAgain)
		if s.memoryLeft() {
			continue
		}
		list := s.programs(pss)
		if len(list) == 0 {
			continue
		}
		largest := slices.MaxFunc(list, func(a, b program) int { return cmp.Compare(a.holds, b.holds) })
		_, _ = s.logs.Write([]byte("sandboxer: memory limit exceeded; killed the largest program\n"))
		_ = syscall.Kill(largest.pid, syscall.SIGKILL)
	}
}

// program is one process and what it holds, in bytes.
type program struct {
	pid   int
	holds int64
}

func (s *server) programs(measure func(pid int) int64) []program {
	var list []program
	for _, pid := range pids() {
		if n := measure(pid); n > 0 {
			list = append(list, program{pid, n})
		}
	}
	return list
}

// memoryLeft reports whether the programs stay within their bound: by the cgroup's count, else by what each
// holds. RSS counts shared memory in full, so it can show that there is room. PSS counts it once, and what is
// mapped from the sandbox's own folders belongs to no program. Each measure counts less than the one before,
// and costs more.
func (s *server) memoryLeft() bool {
	if s.cfg.Counted {
		if n, err := counted(s.files.Memory); err == nil {
			return n-filesUse(s.folders)-ownAnon() <= s.cfg.WatchMemory
		}
	}
	for _, measure := range []func(int) int64{rss, pss, func(pid int) int64 { return pss(pid) - mapped(pid, s.folders) }} {
		var all int64
		for _, p := range s.programs(measure) {
			all += p.holds
		}
		if all <= s.cfg.WatchMemory {
			return true
		}
	}
	return false
}
