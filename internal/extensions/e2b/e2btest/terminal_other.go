//go:build !linux

package e2btest

import (
	"errors"
	"os"
	"syscall"
)

var errNoTerminal = errors.New("there are no sandboxes on this system")

func openTerminal(uint32, uint32) (*os.File, *os.File, error) { return nil, nil, errNoTerminal }
func resize(*os.File, uint32, uint32) error                   { return errNoTerminal }
func onTerminal() *syscall.SysProcAttr                        { return nil }
