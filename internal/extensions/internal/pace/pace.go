// Package pace holds the creates of a binding to a number in a minute, by waiting, so that a loop that went wrong makes few
// sandboxes before its budget ends it. A place's own limits still count: other processes keep a pace of their own.
package pace

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	name = "creates_per_minute"
	most = 60_000
)

// Field is the binding's configuration of it. because, which may be "", says where the default comes from.
func Field(otherwise int64, because string) extensions.Field {
	return extensions.Field{Name: name, Type: extensions.FieldInt, Max: most,
		Doc: fmt.Sprintf("Most sandboxes that one process creates per minute; default: %d%s.", otherwise, because)}
}

// Of returns the limiter of a binding whose configuration was checked. A minute's creates may come at once.
func Of(values map[string]any, otherwise int64) *rate.Limiter {
	n := extensions.Whole(values[name], otherwise)
	return rate.NewLimiter(rate.Every(time.Minute/time.Duration(n)), int(n))
}
