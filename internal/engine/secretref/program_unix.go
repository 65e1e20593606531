//go:build unix

package secretref

import (
	"os/exec"
	"syscall"
)

// nonblock keeps opening a FIFO from blocking.
const nonblock = syscall.O_NONBLOCK

// ownGroup makes a timeout end the program's whole process group.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
