package composessh

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// failed gives err the contract's type, the verb and the sandbox it concerns.
func failed(op string, id extensions.ID, err error) error {
	if err == nil {
		return nil
	}
	if _, bad := extensions.ParseID(string(id)); bad != nil {
		id = "" // what is no id does not belong into a message
	}
	var e *extensions.Error
	if errors.As(err, &e) {
		c := *e
		if c.Op == "" {
			c.Op = op
		}
		if c.ID == "" {
			c.ID = id
		}
		return &c
	}
	kind := extensions.KindInternal
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		kind = extensions.KindTimeout
	case errors.Is(err, context.Canceled):
		kind = extensions.KindIndeterminate
	}
	return &extensions.Error{Kind: kind, Op: op, ID: id, Err: err}
}
