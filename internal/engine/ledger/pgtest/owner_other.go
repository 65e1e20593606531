//go:build !unix

package pgtest

import "os/exec"

// owner is the server's user: ourselves.
type owner struct{}

func otherOwner() (*owner, error) { return nil, nil }

func (*owner) own(string) error { return nil }

func (*owner) run(*exec.Cmd) {}
