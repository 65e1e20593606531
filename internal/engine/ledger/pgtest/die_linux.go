package pgtest

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startBound starts cmd so that it ends when the test program is killed. The kernel watches the thread that started
// it, so that thread must stay.
func startBound(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	started, gone := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(gone)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	return gone, <-started
}
