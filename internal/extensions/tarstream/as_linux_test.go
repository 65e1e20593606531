package tarstream

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// as runs f without root's right to read what modes deny.
func as(t *testing.T, f func()) {
	t.Helper()
	if unix.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its rights
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		if err := unix.Capget(&hdr, &caps[0]); err != nil {
			t.Error(err)
			return
		}
		caps[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
		if err := unix.Capset(&hdr, &caps[0]); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}
