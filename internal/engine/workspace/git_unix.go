//go:build unix

package workspace

import (
	"os/exec"
	"syscall"
)

// detach takes git and its helpers off the terminal, so that nothing can
// prompt, and makes a cancel end all of them.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
