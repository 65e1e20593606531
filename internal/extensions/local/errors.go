package local

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func failed(op string, id extensions.ID, err error) error {
	return extensions.Failed(op, id, err, classify)
}

// classify maps the errors of this machine's system calls.
func classify(err error) *extensions.Error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return extensions.Errorf(extensions.KindUnauthorized, "%w", err).WithRemedy("check the owner and mode of the state folder")
	case noFolder(err):
		return extensions.Errorf(extensions.KindUnreachable, "%w", err).WithRemedy("check the state folder, its disk and its mount")
	case noSpace(err):
		return extensions.Errorf(extensions.KindExhausted, "%w", err).WithRemedy("free some disk space on this machine")
	}
	return nil
}

func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// noFolder reports that the records cannot be read, which says nothing about the sandboxes.
func noFolder(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ESTALE) || errors.Is(err, syscall.ELOOP)
}
