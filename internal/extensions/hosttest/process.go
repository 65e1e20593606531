package hosttest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is one process of this machine.
type Process struct {
	Pid     int
	Command string // its arguments, joined by spaces
	comm    string
	parent  int
}

// processes reads /proc and omits processes that end in the meantime.
func processes() []Process {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var out []Process
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		if open < 0 || end < open {
			continue
		}
		fields := strings.Fields(string(stat[end+1:]))
		if len(fields) < 2 || fields[0] == "Z" { // it has ended, and its parent has not reaped it
			continue
		}
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		out = append(out, Process{Pid: pid, parent: parent, comm: string(stat[open+1 : end]),
			Command: strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))})
	}
	return out
}

// env returns the environment the process was started with, as far as it is readable.
func (p Process) env() []string {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.Pid), "environ"))
	if err != nil {
		return nil
	}
	return strings.Split(string(b), "\x00")
}
