package cli

import (
	"os"

	"golang.org/x/term"
)

// terminal is a terminal that something is drawn on; nil = it is none, or one that only prints.
type terminal struct{ fd int }

func terminalOf(f *os.File) *terminal {
	if fd := int(f.Fd()); term.IsTerminal(fd) && os.Getenv("TERM") != "dumb" {
		return &terminal{fd}
	}
	return nil
}

// size returns columns and rows; 0 = unknown.
func (t *terminal) size() (width, height int) {
	if t == nil {
		return 0, 0
	}
	width, height, err := term.GetSize(t.fd)
	if err != nil {
		return 0, 0
	}
	return width, height
}
