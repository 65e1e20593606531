package tarstream

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (p *packer) file(parent *os.Root, name, at string, seen os.FileInfo) error {
	f, info, done, err := p.openFile(parent, name, seen)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return p.fault(at, err)
	}
	defer done()
	id, several := severalNames(info)
	if first, ok := p.first[id]; several && ok {
		first.Same, first.Path = first.Path, at
		return p.header(first, info.ModTime())
	}
	e := Entry{Path: at, Type: TypeFile, Mode: seen.Mode().Perm(), Size: info.Size()}
	data := dataIn(f, info)
	if err := p.take(e, data); err != nil {
		if p.opts.Partial {
			return p.fault(at, err)
		}
		return err
	}
	if err := p.header(e, info.ModTime(), data...); err != nil || p.lost() {
		return err
	}
	if e.SHA256, err = p.body(f, e.Size, data); err != nil {
		return err
	}
	if e.SHA256 == "" {
		return p.fault(at, errChanged)
	}
	p.digested(e.SHA256)
	if several && p.opts.HardLinks {
		p.first[id] = e
	}
	return nil
}

// body writes the data of f's extents and returns the content's digest. If f is shorter than its header
// promised, body fills up with zeros and returns "".
func (p *packer) body(f *os.File, size int64, data []extent) (string, error) {
	to, pad := io.Writer(p.tw), int64(0)
	if n := sum(data); n < size {
		to, pad = p.w, -n&511
	}
	h, at, whole := newContentHash(), int64(0), true
	for _, x := range data {
		_ = h.hole(x.at - at)
		n, err := io.Copy(io.MultiWriter(to, h), ctxReader{p.ctx, io.NewSectionReader(f, x.at, x.n)})
		var read *fs.PathError
		if err == nil || errors.As(err, &read) {
			whole = whole && n == x.n
			_, err = io.CopyN(to, endlessZeros{}, x.n-n)
		}
		if err != nil {
			return "", fmt.Errorf("write the tar stream: %w", err)
		}
		at = x.at + x.n
	}
	if _, err := io.CopyN(to, endlessZeros{}, pad); err != nil {
		return "", fmt.Errorf("write the tar stream: %w", err)
	}
	if !whole {
		return "", nil
	}
	_ = h.hole(size - at)
	return h.digest(), nil
}

type endlessZeros struct{}

func (endlessZeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// digested completes the last entry with its digest.
func (p *packer) digested(sum string) {
	if !p.opts.NoEntries {
		p.m.Entries[len(p.m.Entries)-1].SHA256 = sum
	}
}

// cost is what an entry uses of Options.MaxBytes: its data, and any unusually large header, as for a very
// deep path or a map of many holes.
func cost(e Entry, data []extent) int64 {
	n := sum(data) + int64(max(0, len(e.Path)-MaxPathBytes))
	if n < e.Size {
		n += int64(len(data)) * 2
	}
	return n
}

func (p *packer) take(e Entry, data []extent) error {
	n := cost(e, data)
	if e.Size < 0 || n > p.opts.MaxBytes-p.bytes {
		return tooMuch("with %s it exceeds %d bytes", Quote(e.Path), p.opts.MaxBytes)
	}
	p.bytes += n
	return nil
}

func (p *packer) symlink(parent *os.Root, name, at string, seen os.FileInfo) error {
	target, err := parent.Readlink(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return p.fault(at, errChanged)
	}
	if why := unfitTarget(target); why != "" {
		return p.fault(at, fmt.Errorf("the link's target %s", why))
	}
	return p.header(Entry{Path: at, Type: TypeSymlink, Mode: 0o777, Link: target}, seen.ModTime())
}

// header writes e's header, after those of the folders that waited for it.
func (p *packer) header(e Entry, mtime time.Time, data ...extent) error {
	if p.lost() {
		return nil
	}
	waiting := p.pending
	p.pending = nil
	for _, d := range append(waiting, dirEntry{e, mtime}) {
		if p.count++; p.count > p.opts.MaxEntries {
			return tooMuch("it has more than %d entries", p.opts.MaxEntries)
		}
		if err := p.write(d, data); err != nil {
			return fmt.Errorf("pack %s: %w", Quote(d.entry.Path), err)
		}
		if !p.opts.NoEntries {
			p.m.Entries = append(p.m.Entries, d.entry)
		}
	}
	return nil
}

func (p *packer) write(d dirEntry, data []extent) error {
	h := p.tarHeader(d)
	if h.Typeflag != tar.TypeReg || sum(data) == h.Size {
		return p.tw.WriteHeader(h)
	}
	head, err := sparseHeader(*h, data)
	if err == nil {
		err = p.tw.Flush()
	}
	if err == nil {
		_, err = p.w.Write(head)
	}
	return err
}

// tarHeader uses GNU's format, which carries every name as its bytes.
func (p *packer) tarHeader(d dirEntry) *tar.Header {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: d.entry.Path, Size: d.entry.Size,
		Mode: int64(d.entry.Mode.Perm()), ModTime: time.Unix(0, 0), Format: tar.FormatGNU,
	}
	if p.opts.KeepTimes {
		h.ModTime = d.mtime.Truncate(time.Second)
	}
	switch {
	case d.entry.Type == TypeDir:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	case d.entry.Type == TypeSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, d.entry.Link
	case d.entry.Same != "":
		h.Typeflag, h.Linkname, h.Size = tar.TypeLink, d.entry.Same, 0
	}
	return h
}

func (p *packer) skip(at, reason string) {
	if int64(len(p.m.Skipped)) < p.opts.MaxEntries {
		p.m.Skipped = append(p.m.Skipped, Skipped{Path: extensions.Clean(at, 200), Reason: reason})
	}
}

// fault notes an object that cannot be carried. It returns an error only if the walk cannot go on.
func (p *packer) fault(at string, err error) error {
	if p.ctx.Err() != nil {
		return p.ctx.Err()
	}
	p.m.Left = append(p.m.Left, LeftOut{at, cause(err)})
	return nil
}

// refusal returns the one error for everything that cannot be carried.
func (p *packer) refusal() error {
	kind, remedy := extensions.KindUnavailable, "Try again once nothing writes there."
	for _, l := range p.m.Left {
		if !errors.Is(l.Err, errChanged) {
			kind, remedy = extensions.KindInvalid, "Make it readable, or exclude it with an ignore file."
		}
	}
	return extensions.Errorf(kind, "cannot be read: %s", List(p.m.Left)).WithRemedy("%s", remedy)
}

// List names the first objects with their reasons and counts the rest.
func List(left []LeftOut) string {
	const most = 20
	var b strings.Builder
	for i, l := range left[:min(most, len(left))] {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %v", Quote(l.Path), l.Err)
	}
	if more := len(left) - most; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
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
	return extensions.Errorf(extensions.KindInvalid, "too much to carry: "+format, args...).
		WithRemedy("Exclude files with an ignore file.")
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
