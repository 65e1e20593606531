//go:build !linux

package pgtest

import "os/exec"

func startBound(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	gone := make(chan struct{})
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(gone)
		_ = cmd.Wait()
	}()
	return gone, nil
}
