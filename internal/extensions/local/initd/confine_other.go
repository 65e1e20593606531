//go:build unix && !linux

package initd

func (*procs) confine(int) {}
