//go:build unix

package exttest

import "syscall"

// ownSession keeps what ends the tests' whole process group from the guard.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
