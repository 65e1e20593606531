//go:build unix

package tarstream

import "syscall"

// A file that became a FIFO after it was looked at must not block the open.
const nonblock = syscall.O_NONBLOCK
