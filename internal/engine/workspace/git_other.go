//go:build !unix

package workspace

import "os/exec"

// detach is empty here: git itself is killed, its helpers are not.
func detach(*exec.Cmd) {}
