package initd

import (
	"cmp"
	"slices"
	"syscall"
	"time"
)

const (
	// watchEvery is how often it is looked at what programs hold.
	watchEvery = 200 * time.Millisecond
	// lookAgain is how long after a first look a second one decides: a program
	// that starts another one is seen twice for a moment, with all it holds.
	lookAgain = 30 * time.Millisecond
)

// watchMemory ends the largest program when all of them together hold more
// than the bound. The kernel's own bound, where a cgroup holds one, is that of
// programs and files together; where none does, this is a bound on accidents.
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
		_, _ = s.logs.Write([]byte("sandboxer: the memory limit was passed; the largest program was ended\n"))
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

// memoryLeft reports whether the programs hold no more than their bound: by
// the cgroup's count, else by what each of them holds. RSS counts what is
// shared in full, so that it is enough to know that there is room, PSS counts
// it once, and what is mapped of the sandbox's own folders is no program's:
// each measure counts less than the one before, and costs more.
func (s *server) memoryLeft() bool {
	if s.cfg.Counted {
		if n, err := counted(s.files.Memory); err == nil {
			return n-filesHeld(s.folders)-ownAnon() <= s.cfg.WatchMemory
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
