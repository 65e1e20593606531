package provider

import (
	"context"
	"os"
	"time"
)

// Killing Terraform does not end its providers. The lost connection cancels what it had asked for, which then
// has orphanGrace to be undone or kept. The provider then ends too and leaves what it holds to the next run.
const (
	orphanGrace = time.Minute
	orphanLook  = time.Second
)

// endWithParent calls end once the parent process is gone and the grace is over. parent returns the parent's
// process id. endWithParent returns when ctx ends.
func endWithParent(ctx context.Context, parent func() int, look, grace time.Duration, end func()) {
	pause := func(d time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	for first := parent(); parent() == first; {
		if !pause(look) {
			return
		}
	}
	if pause(grace) {
		end()
	}
}

// orphaned ends this process as the signal that killed Terraform would have.
func (p *Provider) orphaned() {
	_ = p.Close()
	os.Exit(1)
}
