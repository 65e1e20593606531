//go:build !linux

package box

import (
	"errors"
	"os"
	"syscall"
)

var errNoTerminal = errors.New("there are no sandboxes on this system")

// OpenTerminal opens both ends of a new terminal.
func OpenTerminal(uint32, uint32) (*os.File, *os.File, error) { return nil, nil, errNoTerminal }

// Resize changes the size of a terminal by either end.
func Resize(*os.File, uint32, uint32) error { return errNoTerminal }

// OnTerminal makes a process's input its terminal.
func OnTerminal() *syscall.SysProcAttr { return nil }
