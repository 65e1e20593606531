package docker

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// counts are what a kernel counts for a container.
type counts struct {
	cpu  time.Duration
	sent uint64 // bytes, loopback apart
}

// counted reads them where the kernel has them: files are this machine's, and pid is what the engine calls the container's
// first process. An engine before 29 looks at a container once a second, so each answer of its own takes half a second. ok is
// false if the process is not the container's, as that of another machine's engine or of Docker Desktop is not.
func counted(files fs.FS, pid int, container string) (c counts, ok bool) {
	proc := path.Join("proc", strconv.Itoa(pid))
	lines, err := fs.ReadFile(files, proc+"/cgroup")
	if err != nil || container == "" {
		return c, false
	}
	if c.cpu, ok = cpuTime(files, string(lines), container); !ok {
		return c, false
	}
	table, err := fs.ReadFile(files, proc+"/net/dev")
	if err != nil {
		return c, false
	}
	for line := range strings.Lines(string(table)) {
		name, rest, isDevice := strings.Cut(line, ":")
		if !isDevice || strings.TrimSpace(name) == "lo" {
			continue
		}
		sent, err := strconv.ParseUint(at(strings.Fields(rest), 8), 10, 64)
		if err != nil {
			return c, false
		}
		c.sent += sent
	}
	return c, true
}

// cpuTime reads the CPU time of the container's control group, that of version 1 if there are both. What a program inside
// divided further is below it. The lines are those of /proc/PID/cgroup; see cgroups(7).
func cpuTime(files fs.FS, lines, container string) (time.Duration, bool) {
	var second string
	for line := range strings.Lines(lines) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		dir, own := upTo(at(f, 2), container)
		switch {
		case !own:
		case at(f, 1) == "":
			second = dir
		case strings.Contains(","+f[1]+",", ",cpuacct,"):
			return number64(files, path.Join("sys/fs/cgroup", f[1], dir, "cpuacct.usage"), "", time.Nanosecond)
		}
	}
	if second == "" {
		return 0, false
	}
	return number64(files, path.Join("sys/fs/cgroup", second, "cpu.stat"), "usage_usec", time.Microsecond)
}

// upTo returns the folder of a container's control group, if dir is that or below it. Engines name it by the container's
// id, as systemd's unit if systemd makes it.
func upTo(dir, container string) (string, bool) {
	parts := strings.Split(dir, "/")
	for i, p := range parts {
		if p == container || p == "docker-"+container+".scope" {
			return strings.Join(parts[:i+1], "/"), true
		}
	}
	return "", false
}

// number64 reads a file's number, or the one in the line that begins with key.
func number64(files fs.FS, name, key string, unit time.Duration) (time.Duration, bool) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		word, isKey := strings.CutPrefix(strings.TrimSpace(line), key)
		if !isKey {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
		return time.Duration(n) * unit, err == nil
	}
	return 0, false
}
