//go:build !linux

package box

import (
	"errors"
	"os/exec"
)

func lacking() string { return "that is written for Linux" }

// Box is the inside of one sandbox; there is none on this system.
type Box struct {
	Root string
	UID  int
}

var errNone = errors.New("there are no boxes on this system")

// New fails here, as all other functions do.
func (*Shelf) New(string, map[string]string) (*Box, error) { return nil, errNone }

// Copy fails here.
func (*Shelf) Copy(string, string, map[string]string) (*Box, error) { return nil, errNone }

// Own fails here.
func (*Box) Own() error { return errNone }

// Start fails here.
func (*Box) Start(*exec.Cmd) error { return errNone }

// Processes lists none here.
func (*Box) Processes() []int { return nil }

// Freeze fails here.
func (*Box) Freeze() error { return errNone }

// Thaw fails here.
func (*Box) Thaw() error { return errNone }

// Kill fails here.
func (*Box) Kill() error { return errNone }

// Remove fails here.
func (*Box) Remove() error { return errNone }
