package tarstream

import (
	"context"
	"io"
	"os"
	"slices"
	"time"
)

// Contents is a stream stored in a file: its manifest, and the content of each of its files on request. Its
// names need not exist on this system.
type Contents struct {
	Manifest
	from  io.ReaderAt
	files map[string]stored
	room  room
}

// stored says where a file's data lies.
type stored struct {
	at, size int64
	data     []extent
}

// Index reads the whole stream in r under the rules of Unpack and writes nothing. It omits what Options.Skip
// names. r must not change while the result is used.
func Index(ctx context.Context, r *io.SectionReader, opts Options) (*Contents, error) {
	c, extents := &Contents{from: r, files: map[string]stored{}}, 0
	opts = opts.withDefaults()
	u := newUnpacker(ctx, opts, nil)
	u.place = func(e *Entry, _ time.Time) error {
		switch {
		case e.Type != TypeFile:
			return nil
		case e.Same != "":
			c.files[e.Path] = c.files[e.Same]
			return nil
		}
		data := u.in.extents()
		if extents += len(data); extents > opts.MaxExtents {
			return tooMuch("its sparse files have more than %d pieces", opts.MaxExtents)
		}
		c.files[e.Path] = stored{u.in.Offset(), e.Size, data}
		var err error
		e.SHA256, err = u.in.Digest()
		return u.broken(err)
	}
	if err := u.run(io.NewSectionReader(r, 0, r.Size())); err != nil {
		return nil, err
	}
	u.m.sort()
	if opts.Skip != nil {
		u.m.Entries = slices.DeleteFunc(u.m.Entries, func(e Entry) bool { return opts.Skip(e.Path, e.Type == TypeDir) })
	}
	c.Manifest = u.m
	return c, nil
}

// CopyTo writes the content of the file at path to an empty file. Holes stay holes. It returns KindExhausted
// rather than fill the disk.
func (c *Contents) CopyTo(to *os.File, path string) error {
	s := c.files[path]
	if err := c.room.take(to, max(diskBlock, sum(s.data))); err != nil {
		return err
	}
	if err := pour(intoFile{to}, io.NewSectionReader(c.from, s.at, sum(s.data)), s.size, s.data); err != nil {
		return err
	}
	return intoFile{to}.end(s.size)
}
