//go:build unix

package workspace

import (
	"os/exec"
	"syscall"
)

// detach detaches git and its helpers from the terminal, so that nothing can prompt, and makes a cancel
// kill all of them.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
