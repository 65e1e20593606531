package vendor

import (
	"context"
	"io"
	"io/fs"
	"os"
	"syscall"

	"mvdan.cc/sh/v3/interp"
)

func (m *machine) open(ctx context.Context, p string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	abs := resolve(interp.HandlerCtx(ctx).Dir, p)
	if abs == "/dev/null" {
		return os.OpenFile(os.DevNull, flag, perm)
	}
	f, err := m.openFile(abs, flag, perm)
	if err != nil {
		return nil, tell("open", p, err)
	}
	return f, nil
}

func (m *machine) openFile(abs string, flag int, perm os.FileMode) (*os.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC) != 0 {
		if err := m.writable(abs); err != nil {
			return nil, err
		}
	}
	return m.root.OpenFile(inside(abs), flag, perm)
}

// writable refuses changes to a read-only workspace, even through links.
func (m *machine) writable(abs string) error {
	if !m.obj.ReadOnly {
		return nil
	}
	if m.obj.frozen(abs) {
		return syscall.EROFS
	}
	if info, err := m.root.Lstat(inside(abs)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return syscall.EROFS // its target is not resolved: refused
	}
	for dir := abs; dir != "/"; dir = resolve(dir, "..") {
		if info, err := m.root.Lstat(inside(dir)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return syscall.EROFS
		}
	}
	return nil
}

func (m *machine) readDir(ctx context.Context, p string) ([]fs.DirEntry, error) {
	return fs.ReadDir(m.root.FS(), inside(resolve(interp.HandlerCtx(ctx).Dir, p)))
}

func (m *machine) stat(ctx context.Context, p string, follow bool) (fs.FileInfo, error) {
	abs := resolve(interp.HandlerCtx(ctx).Dir, p)
	if abs == "/dev/null" {
		return os.Stat(os.DevNull)
	}
	if follow {
		return m.root.Stat(inside(abs))
	}
	return m.root.Lstat(inside(abs))
}

func (m *machine) access(ctx context.Context, p string, mode interp.AccessMode) error {
	abs := resolve(interp.HandlerCtx(ctx).Dir, p)
	info, err := m.stat(ctx, abs, true)
	if err != nil {
		return err
	}
	if info.Mode().Perm()>>6&fs.FileMode(mode) != fs.FileMode(mode) {
		return fs.ErrPermission
	}
	if mode&interp.AccessWrite != 0 {
		return m.writable(abs)
	}
	return nil
}

// tell names the path as the script wrote it, never as the host has it.
func tell(op, p string, err error) error {
	for {
		switch e := err.(type) { //nolint:errorlint // it unwraps one layer at a time
		case *fs.PathError:
			err = e.Err
		case *os.LinkError:
			err = e.Err
		default:
			return &fs.PathError{Op: op, Path: p, Err: err}
		}
	}
}
