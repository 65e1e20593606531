//go:build linux

package remote

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// The connection that died while idle, unnoticed, is replaced for all that come.
func TestStaleConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	addr, conns := hosttest.DelayProxy(t, s.Addr, 0)
	c := open(t, through(t, s, addr), Options{KeepAlive: 2 * time.Minute, DialTimeout: 4 * time.Second})
	calls(t, c, 1, "")
	for _, p := range connectionsOf(t, s) {
		signalProcess(t, p, syscall.SIGSTOP) // like a NAT box that has forgotten us
		t.Cleanup(func() { signalProcess(t, p, syscall.SIGKILL) })
	}
	begun := time.Now()
	calls(t, c, 1, "")
	if took := time.Since(begun); took > time.Minute || conns() != 2 {
		t.Errorf("it took %s and %d connections", took, conns())
	}
}

// connectionsOf are the sshd processes that serve a connection.
func connectionsOf(t *testing.T, s *hosttest.Server) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, stat := range stats {
		b, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(s.Pid()) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func signalProcess(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}
