package engine

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/life"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type (
	// Actual is what a sandbox used so far, or in all once it has ended.
	Actual = life.Actual
	// MeasuredUse is what a place measures or expects.
	MeasuredUse = extensions.Usage
)

// Sources of an Actual.
const (
	ActualPlace   = life.ActualPlace
	ActualTime    = life.ActualTime
	ActualSettled = life.ActualSettled
)

// Actual reads what a sandbox uses; see [life.Manager.Actual].
func (e *Engine) Actual(ctx context.Context, id ID) (*Actual, error) {
	return e.life.Actual(ctx, id)
}
