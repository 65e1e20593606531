package engine

import "context"

// Recover is what a run does before its first change.
func (e *Engine) Recover(ctx context.Context, notify Notify) error {
	return e.life.Recover(ctx, notify)
}
