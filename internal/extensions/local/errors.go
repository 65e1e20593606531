package local

import (
	"context"
	"errors"
	"io/fs"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// failed gives err the contract's type, the verb and the sandbox it concerns.
// It is the one place where this package classifies what others return.
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
	remedy := ""
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		kind = extensions.KindTimeout
	case errors.Is(err, context.Canceled):
		kind = extensions.KindIndeterminate
	case errors.Is(err, fs.ErrPermission):
		kind, remedy = extensions.KindUnauthorized, "check the owner and mode of the state folder"
	case noFolder(err):
		kind, remedy = extensions.KindUnreachable, "check the state folder: its disk, its mount, what stands in its place"
	case noSpace(err):
		kind, remedy = extensions.KindExhausted, "free some disk space on this machine"
	}
	return &extensions.Error{Kind: kind, Op: op, ID: id, Remedy: remedy, Err: err}
}
