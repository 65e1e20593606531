package initd

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of times in /proc: USER_HZ is 100 on every processor that Go runs on.
const tick = 10 * time.Millisecond

// cpu returns the CPU time that the programs have used so far: what lives, with the children that it waited for, and
// what the init reaped. A program that ignores the end of its children hides what they used.
func (p *procs) cpu() (time.Duration, error) {
	var reaped unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &reaped); err != nil {
		return 0, err
	}
	all := time.Duration(reaped.Utime.Nano() + reaped.Stime.Nano())
	for _, pid := range p.all() {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return 0, err
		}
		all += ticks(b)
	}
	return all, nil
}

// ticks reads utime, stime, cutime and cstime of proc_pid_stat(5), its fields 14 to 17.
func ticks(stat []byte) (all time.Duration) {
	after := stat[bytes.LastIndexByte(stat, ')')+1:] // the name before may have blanks and parentheses
	for i, f := range bytes.Fields(after) {
		if i >= 11 && i <= 14 {
			n, _ := strconv.ParseInt(string(f), 10, 64)
			all += time.Duration(n) * tick
		}
	}
	return all
}
