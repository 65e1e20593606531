//go:build !unix

package exttest

import "syscall"

func ownSession() *syscall.SysProcAttr { return nil }
