package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// exportTo writes a file completely or not at all: the name appears once the file is complete and on disk.
// The file keeps the permissions it had; a new one is its owner's alone. Anything but an ordinary file, such
// as a pipe, is written in place.
func (a *app) exportTo(ctx context.Context, name string, write func(io.Writer) error) (err error) {
	if name == "" {
		return write(a.out)
	}
	at, mode, stream, err := existing(name)
	if err != nil {
		return notWritten(name, extensions.KindInvalid, err)
	}
	if stream {
		return streamTo(ctx, name, write)
	}
	f, err := os.CreateTemp(filepath.Dir(at), ".export-*")
	if err != nil {
		return notWritten(name, extensions.KindInvalid, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return notWritten(name, extensions.KindUnavailable, err)
	}
	if err := errors.Join(f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return notWritten(name, extensions.KindUnavailable, err)
	}
	return notWritten(name, extensions.KindInvalid, os.Rename(f.Name(), at))
}

// streamTo writes to something other than an ordinary file. A pipe waits for its reader until the command is
// interrupted.
func streamTo(ctx context.Context, name string, write func(io.Writer) error) error {
	f, err := openStream(ctx, name)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Now()) }) // ends a write to a full pipe
		err = errors.Join(write(f), f.Close())
		stop()
	}
	if err != nil && ctx.Err() != nil {
		return extensions.Errorf(extensions.KindInterrupted, "writing %s: interrupted before the reader read all of it", name).
			WithRemedy("start a program that reads from it, then run this again")
	}
	return notWritten(name, extensions.KindUnavailable, err)
}

// openStream opens name for writing, or gives up when ctx ends.
func openStream(ctx context.Context, name string) (*os.File, error) {
	type result struct {
		f   *os.File
		err error
	}
	opened := make(chan result, 1)
	go func() { // ends with a reader, or with the process
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		opened <- result{f, err}
	}()
	select {
	case r := <-opened:
		return r.f, r.err
	case <-ctx.Done():
		go func() {
			if r := <-opened; r.err == nil {
				_ = r.f.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// existing describes the file that name would replace: its path with links followed, and its permissions.
// Anything but an ordinary file is a stream.
func existing(name string) (at string, mode os.FileMode, stream bool, err error) {
	info, err := os.Stat(name)
	switch {
	case err != nil: // there is none, or creating it reports why
		return name, 0o600, false, nil
	case info.IsDir():
		return name, 0, false, errors.New("it is a folder")
	case !info.Mode().IsRegular():
		return name, 0, true, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return name, 0, false, err
	}
	if at, err = filepath.EvalSymlinks(name); err != nil {
		return name, 0, false, errors.Join(err, f.Close())
	}
	return at, info.Mode().Perm(), false, f.Close()
}

// notWritten reports what the disk refused. Other errors stay as they are.
func notWritten(name string, kind extensions.Kind, err error) error {
	var told *extensions.Error
	if err == nil || errors.As(err, &told) {
		return err
	}
	var disk *fs.PathError
	var moved *os.LinkError
	switch { // their paths name a file the user did not ask for
	case errors.As(err, &disk):
		err = disk.Err
	case errors.As(err, &moved):
		err = moved.Err
	}
	return extensions.Errorf(kind, "writing %s: %w", name, err).WithRemedy("choose a file that you may write, on a disk with free space")
}
