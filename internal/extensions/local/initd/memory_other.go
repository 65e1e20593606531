//go:build unix && !linux

package initd

func (*server) watchMemory() {}
