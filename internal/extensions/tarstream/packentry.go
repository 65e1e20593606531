package tarstream

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (p *packer) file(parent *os.Root, name, at string, seen os.FileInfo) error {
	f, info, err := openFile(parent, name, seen)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return p.unreadable(at, err)
	}
	defer f.Close()
	if err := p.take(at, info.Size()); err != nil {
		return err
	}
	e := Entry{Path: at, Type: TypeFile, Mode: info.Mode().Perm(), Size: info.Size()}
	if err := p.header(e, info.ModTime()); err != nil {
		return err
	}
	h := sha256.New()
	// The header's size is a promise: a file that grows is cut there.
	n, err := io.Copy(io.MultiWriter(p.tw, h), ctxReader{p.ctx, io.LimitReader(f, e.Size)})
	if err != nil {
		return fmt.Errorf("pack %q: %w", extensions.Clean(at, 200), err)
	}
	if n < e.Size {
		return p.unreadable(at, errChanged)
	}
	p.m.Entries[len(p.m.Entries)-1].SHA256 = hex.EncodeToString(h.Sum(nil))
	return nil
}

func (p *packer) take(at string, size int64) error {
	if size < 0 || size > p.opts.MaxBytes-p.bytes {
		return tooMuch("with %q it is larger than %d bytes", at, p.opts.MaxBytes)
	}
	p.bytes += size
	return nil
}

func (p *packer) symlink(parent *os.Root, name, at string, seen os.FileInfo) error {
	target, err := parent.Readlink(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return p.unreadable(at, errChanged)
	}
	if why := unfitName(target); why != "" {
		p.skip(at, "the link's target "+why)
		return nil
	}
	return p.header(Entry{Path: at, Type: TypeSymlink, Mode: 0o777, Link: target}, seen.ModTime())
}

// header writes e's header, after those of the folders that waited for it.
func (p *packer) header(e Entry, mtime time.Time) error {
	waiting := p.pending
	p.pending = nil
	for _, d := range append(waiting, dirEntry{e, mtime}) {
		if len(p.m.Entries) >= p.opts.MaxEntries {
			return tooMuch("it holds more than %d entries", p.opts.MaxEntries)
		}
		if err := p.tw.WriteHeader(p.tarHeader(d)); err != nil {
			return fmt.Errorf("pack %q: %w", extensions.Clean(d.entry.Path, 200), err)
		}
		p.m.Entries = append(p.m.Entries, d.entry)
	}
	return nil
}

func (p *packer) tarHeader(d dirEntry) *tar.Header {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: d.entry.Path, Size: d.entry.Size,
		Mode: int64(d.entry.Mode.Perm()), ModTime: time.Unix(0, 0),
	}
	if p.opts.KeepTimes {
		h.ModTime = d.mtime.Truncate(time.Second)
	}
	switch d.entry.Type {
	case TypeDir:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	case TypeSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, d.entry.Link
	}
	return h
}

func (p *packer) skip(at, reason string) {
	if len(p.m.Skipped) < p.opts.MaxEntries {
		p.m.Skipped = append(p.m.Skipped, Skipped{Path: extensions.Clean(at, 200), Reason: reason})
	}
}

// unreadable classifies a failure to look at or open the object at.
func (p *packer) unreadable(at string, err error) error {
	var ours *extensions.Error
	name := extensions.Clean(at, 200)
	switch {
	case errors.As(err, &ours):
		return err
	case p.ctx.Err() != nil:
		return p.ctx.Err()
	case errors.Is(err, errChanged):
		return extensions.Errorf(extensions.KindUnavailable, "pack %q: %w", name, err).
			WithRemedy("Try again once nothing writes there.")
	}
	return extensions.Errorf(extensions.KindInvalid, "%q cannot be read: %w", name, cause(err)).
		WithRemedy("Make it readable, or leave it out with an ignore file.")
}

// cause drops the path that the error repeats.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func tooMuch(format string, args ...any) error {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = extensions.Clean(s, 200)
		}
	}
	return extensions.Errorf(extensions.KindInvalid, "too much to carry: "+format, args...).
		WithRemedy("Leave out what is not needed with an ignore file.")
}

func describe(m fs.FileMode) string {
	switch {
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeNamedPipe != 0:
		return "FIFO"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}
