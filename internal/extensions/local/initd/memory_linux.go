package initd

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// watchEvery is how often memory is summed up where no cgroup bounds it.
const watchEvery = 200 * time.Millisecond

// watchMemory ends the largest program when all of them together hold more
// than the bound. It is a bound on accidents: the kernel's own needs a cgroup.
func (s *server) watchMemory() {
	page := int64(os.Getpagesize())
	for {
		time.Sleep(watchEvery)
		var sum, most int64
		largest := 0
		for _, pid := range pids() {
			b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
			f := bytes.Fields(b)
			if err != nil || len(f) < 2 {
				continue
			}
			n, _ := strconv.ParseInt(string(f[1]), 10, 64)
			sum += n * page
			if n > most {
				most, largest = n, pid
			}
		}
		if sum > s.cfg.WatchMemory && largest > 0 {
			_, _ = s.logs.Write([]byte("sandboxer: the memory limit was passed; the largest program was ended\n"))
			_ = syscall.Kill(largest, syscall.SIGKILL)
		}
	}
}
