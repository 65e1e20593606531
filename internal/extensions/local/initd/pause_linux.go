package initd

import (
	"bytes"
	"os"
	"strconv"
)

// moves reports whether a thread of a process can run programs' code: one that waits in the kernel without
// hearing signals stops before it returns.
func moves(pid int) bool {
	return anyThread(pid, func(state byte) bool { return state == 'R' || state == 'S' })
}

// stopped reports whether a process was stopped, by whomever.
func stopped(pid int) bool { return anyThread(pid, func(state byte) bool { return state == 'T' }) }

func anyThread(pid int, is func(state byte) bool) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return false // it has ended
	}
	for _, t := range threads {
		b, err := os.ReadFile(dir + "/" + t.Name() + "/stat")
		if err != nil {
			continue
		}
		// "pid (name) S …", and a name may have parentheses of its own
		if i := bytes.LastIndexByte(b, ')'); i >= 0 && i+2 < len(b) && is(b[i+2]) {
			return true
		}
	}
	return false
}
