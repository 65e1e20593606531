package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruption is the cause of a context that a signal ended.
type interruption struct{ signal syscall.Signal }

var interruptions = map[os.Signal]string{syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM"}

func (i interruption) Error() string { return "interrupted by " + interruptions[i.signal] }

// code is the exit code that a shell gives to a process the signal ended.
func (i interruption) code() int { return 128 + int(i.signal) }

// untilSignal ends the context at the first SIGHUP, SIGINT or SIGTERM, with an
// interruption as its cause; a second one ends the process. SIGHUP stays ignored
// where it was ignored at the start, as nohup does.
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
