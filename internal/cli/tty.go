package cli

import (
	"os"
	"os/signal"

	"golang.org/x/term"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The size of a terminal inside where this process has none itself.
const (
	defaultRows = 24
	defaultCols = 80
)

// giveTerminal gives the request a terminal of the size of ours, and passes on every key of ours unchanged. back undoes
// the latter. Where standard input is no terminal, it is only passed on.
func (a *app) giveTerminal(req *engine.ExecRequest) (back func(), err error) {
	tty := &extensions.TTY{Rows: defaultRows, Cols: defaultCols}
	req.TTY, back = tty, func() {}
	if f, ok := a.in.(*os.File); ok && keysOf(f) {
		keys := int(f.Fd())
		had, err := term.MakeRaw(keys)
		if err != nil {
			return nil, extensions.Errorf(extensions.KindUnavailable, "this terminal cannot pass keys on: %w", err)
		}
		back = func() { _ = term.Restore(keys, had) }
	}
	screen, ok := a.shownOn()
	if !ok {
		return back, nil
	}
	size := func() (rows, cols uint16) {
		w, h, err := term.GetSize(screen)
		if err != nil || w < 1 || h < 1 {
			return defaultRows, defaultCols
		}
		return uint16(min(h, 1<<16-1)), uint16(min(w, 1<<16-1))
	}
	tty.Rows, tty.Cols = size()
	changed, sizes, over := make(chan os.Signal, 1), make(chan [2]uint16), make(chan struct{})
	notifyResize(changed)
	tty.Resize = sizes
	go func() {
		for {
			select {
			case <-changed:
			case <-over:
				return
			}
			rows, cols := size()
			select {
			case sizes <- [2]uint16{rows, cols}:
			case <-over:
				return
			}
		}
	}()
	restore := back
	return func() {
		signal.Stop(changed)
		close(over)
		restore()
	}, nil
}

// shownOn returns the descriptor of the terminal that shows the output, else of the one that has the keys.
func (a *app) shownOn() (fd int, ok bool) {
	for _, f := range []*os.File{os.Stdout, os.Stdin} {
		if term.IsTerminal(int(f.Fd())) {
			return int(f.Fd()), true
		}
	}
	return 0, false
}
