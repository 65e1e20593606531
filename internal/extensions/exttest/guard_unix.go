//go:build unix

package exttest

import "syscall"

// ownSession protects the guard from what ends the tests' whole process group.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
