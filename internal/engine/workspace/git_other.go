//go:build !unix

package workspace

import "os/exec"

// detach does nothing here: a cancel kills git itself but not its helpers.
func detach(*exec.Cmd) {}
