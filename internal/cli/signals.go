package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruption is the cause of a context that a signal canceled.
type interruption struct{ signal syscall.Signal }

var interruptions = map[os.Signal]string{syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM"}

func (i interruption) Error() string { return "interrupted by " + interruptions[i.signal] }

// code is the exit code a shell reports for a process killed by the signal.
func (i interruption) code() int { return 128 + int(i.signal) }

// untilSignal cancels the context at the first SIGHUP, SIGINT or SIGTERM, with an interruption as its cause;
// a second one ends the process. A SIGHUP ignored at the start, as under nohup, stays ignored.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	came := make(chan os.Signal, 1)
	for s := range interruptions {
		if s != syscall.SIGHUP || !signal.Ignored(s) {
			signal.Notify(came, s)
		}
	}
	go func() {
		select {
		case s := <-came:
			signal.Stop(came)
			cancel(interruption{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(came)
		cancel(context.Canceled)
	}
}
