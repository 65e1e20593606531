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

// exportTo writes a file whole or not at all: it appears under its name when
// it is complete and on the disk, with the rights that it had, or its owner's
// alone. What is no ordinary file, such as a pipe, is written to as it is.
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

// streamTo writes to what is no ordinary file. A pipe waits for who reads it, as
// long as the command is not interrupted.
func streamTo(ctx context.Context, name string, write func(io.Writer) error) error {
	f, err := openStream(ctx, name)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Now()) }) // ends a write to a full pipe
		err = errors.Join(write(f), f.Close())
		stop()
	}
	if err != nil && ctx.Err() != nil {
		return extensions.Errorf(extensions.KindInterrupted, "writing %s: interrupted, before all of it was read", name).
			WithRemedy("run it again when something reads there")
	}
	return notWritten(name, extensions.KindUnavailable, err)
}

// openStream opens name to be written to, or gives up with ctx.
func openStream(ctx context.Context, name string) (*os.File, error) {
	type result struct {
		f   *os.File
		err error
	}
	opened := make(chan result, 1)
	go func() { // it ends when somebody reads, or with the process
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

// existing tells what a file of that name would replace: where it is, which a
// link only points to, and the rights that it has. What is no ordinary file is
// a stream.
func existing(name string) (at string, mode os.FileMode, stream bool, err error) {
	info, err := os.Stat(name)
	switch {
	case err != nil: // there is none, or making it tells why not
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

// notWritten says what the disk would not do. Other errors stay as they are.
func notWritten(name string, kind extensions.Kind, err error) error {
	var told *extensions.Error
	if err == nil || errors.As(err, &told) {
		return err
	}
	var disk *fs.PathError
	var moved *os.LinkError
	switch { // their paths are of a file nobody asked for
	case errors.As(err, &disk):
		err = disk.Err
	case errors.As(err, &moved):
		err = moved.Err
	}
	return extensions.Errorf(kind, "writing %s: %w", name, err).WithRemedy("name a file you may write, with room on its disk")
}
