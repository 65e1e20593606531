package initd

import (
	"syscall"
	"unsafe"
)

// sigaction is the kernel's struct on amd64 and arm64. Elsewhere the fields after the handler are laid out
// differently, and nothing is changed.
type sigaction struct {
	handler, flags, restorer, mask uint64
}

const (
	ignored    = 1 // SIG_IGN
	lastSignal = 64
)

// unignore restores the default action of ignored signals. Our starter decides what we ignore (make: signal
// 32), and every program started from here would inherit it.
func unignore() {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		return
	}
	for sig := uintptr(1); sig <= lastSignal; sig++ {
		var now, none sigaction
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&now)), 8, 0, 0)
		if errno == 0 && now.handler == ignored {
			_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0)
		}
	}
}
