//go:build unix

package remote

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the end of a credential command that of its children too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
