package initd

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A program that leaves its process group by a double fork and setsid can be told from others only by what it
// inherits. Every descendant inherits the soft limit on POSIX message queues, /proc shows it, and nothing
// ordinary depends on its exact value, so each job starts with a limit derived from its own number.

const tagSpan = 1 << 16

// tagOf derives a limit in bytes from a job's number.
func tagOf(n uint64) uint64 { return 100_000 + n%tagSpan }

// tagNext sets the limit that the next program inherits.
func tagNext(n uint64) uint64 {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &lim) != nil || lim.Max < 100_000+tagSpan {
		return 0
	}
	lim.Cur = tagOf(n)
	if unix.Setrlimit(unix.RLIMIT_MSGQUEUE, &lim) != nil {
		return 0
	}
	return lim.Cur
}

// tagged lists the living processes that carry the tag.
func tagged(tag uint64) []int {
	if tag == 0 {
		return nil
	}
	var found []int
	want := strconv.FormatUint(tag, 10)
	for _, pid := range pids() {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
		if err != nil {
			continue
		}
		_, after, ok := bytes.Cut(b, []byte("Max msgqueue size"))
		if f := bytes.Fields(after); ok && len(f) > 0 && string(f[0]) == want {
			found = append(found, pid)
		}
	}
	return found
}

// pids lists all processes but our own, which also carries the latest tag.
func pids() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, _ := d.Readdirnames(-1)
	list := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != syscall.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}

// Members lists the processes whose environment carries the sandbox's id, as far as this user may look. It
// finds programs without walls.
func Members(id string) []int {
	var found []int
	want := []byte("\x00SANDBOXER_ID=" + id + "\x00")
	for _, pid := range pids() {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err == nil && bytes.Contains(append([]byte{0}, env...), want) {
			found = append(found, pid)
		}
	}
	return found
}
