//go:build !unix

package local

import "os"

// lockFile does nothing: no sandbox is ever made on this system.
func lockFile(*os.File) error { return nil }
