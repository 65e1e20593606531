// Package failpoint marks the points between two steps where tests fail a step or kill the process. Outside tests
// they do nothing: only the package failpointtest arms them, and the program does not link it.
package failpoint

import (
	"context"
	"sync/atomic"
)

// Hook is called by Hit; failpointtest sets it.
var Hook atomic.Pointer[func(ctx context.Context, name string) error]

// Hit marks the step name. It returns nil unless a test armed the point.
func Hit(ctx context.Context, name string) error {
	if hook := Hook.Load(); hook != nil {
		return (*hook)(ctx, name)
	}
	return nil
}
