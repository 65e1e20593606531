package local

import (
	"bytes"
	"os"
	"strconv"
)

func selfPath() (string, error) { return "/proc/self/exe", nil }

// owns reports whether some member of the session carries the sandbox's id in
// its environment.
func (b box) owns(session int, _ record) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	want := []byte("SANDBOXER_ID=" + string(b.id))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || sessionOf(pid) != session {
			continue
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		if bytes.Contains(append([]byte{0}, env...), append([]byte{0}, want...)) {
			return true
		}
	}
	return false
}

// sessionOf is field 6 of proc_pid_stat(5).
func sessionOf(pid int) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	i := bytes.LastIndexByte(b, ')')
	if err != nil || i < 0 {
		return 0
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 4 {
		return 0
	}
	n, _ := strconv.Atoi(string(f[3]))
	return n
}
