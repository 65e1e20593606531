//go:build !unix

package cli

import "os"

// notifyResize does nothing: this system sends no signal for it.
func notifyResize(chan<- os.Signal) {}
