package provider

import (
	"context"
	"os"
	"time"
)

// A Terraform that is killed ends no provider. What it had asked for is
// cancelled with its connection and gets orphanGrace to be undone or kept; then
// the provider ends too, and what it holds goes to the next run.
const (
	orphanGrace = time.Minute
	orphanLook  = time.Second
)

// endWithParent calls end once the process that started this one is gone and
// the grace is over. parent tells the parent's process id. It returns with ctx.
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

// orphaned ends this process as the kill of Terraform would have.
func (p *Provider) orphaned() {
	_ = p.Close()
	os.Exit(1)
}
