//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// exitClosed is the exit code a shell reports for a process that SIGPIPE ended.
const exitClosed = 128 + int(syscall.SIGPIPE)

// catchBrokenPipes makes a write that nobody reads an error, which would end this process otherwise, until back. The
// signal is caught, not ignored: what we start would inherit that.
func catchBrokenPipes() (back func()) {
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGPIPE)
	return func() { signal.Stop(came) }
}
