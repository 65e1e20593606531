//go:build !unix

package command

import (
	"os"
	"os/exec"
)

// ours: who can write a file cannot be told here, so none is trusted.
func ours(os.FileInfo) bool { return false }

func apart(*exec.Cmd) {}

func kill(p *os.Process) error { return p.Kill() }
