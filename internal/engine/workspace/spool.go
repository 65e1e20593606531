package workspace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// Source is a workspace's complete, unchanging stream. It implements extensions.WorkspaceSource and allows
// several concurrent readers.
type Source struct {
	file     *os.File
	name     string // "" if the file is already unlinked
	size     int64
	digest   string
	origin   string
	commit   string
	manifest tarstream.Manifest
}

var _ extensions.WorkspaceSource = (*Source)(nil)

// Open starts the stream from its beginning. Closing the reader frees nothing; Source.Close does.
func (s *Source) Open(ctx context.Context) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all := io.NewSectionReader(s.file, 0, s.size)
	if s.size < toldSize {
		return io.NopCloser(all), nil
	}
	return io.NopCloser(&sending{Reader: all, ctx: ctx, size: s.size}), nil
}

// toldSize is the size, in bytes, from which a transfer is worth telling.
const toldSize = 4 << 20

// sending tells how much of a stream was read.
type sending struct {
	io.Reader
	ctx        context.Context //nolint:containedctx // who opened the stream is told
	size, done int64
}

func (s *sending) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.done += int64(n)
	extensions.Progress(s.ctx, "Sending the files", fmt.Sprintf("%d of %d MiB", s.done>>20, s.size>>20))
	return n, err
}

// Digest returns the lower-case hex SHA-256 of the stream.
func (s *Source) Digest() string { return s.digest }

// Size returns the stream's length in bytes.
func (s *Source) Size() int64 { return s.size }

// Origin returns the folder, or "URL@commit", without credentials.
func (s *Source) Origin() string { return s.origin }

// Manifest lists what the stream holds and what was left out. For a mirrored workspace, it is the base for
// a later SyncBack.
func (s *Source) Manifest() tarstream.Manifest { return s.manifest }

// Close frees the spool. Open readers fail from then on.
func (s *Source) Close() error {
	err := s.file.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	return err
}

// spool writes a stream to a private file. Where the system allows, the file no longer has a name, so
// nothing remains however this process ends.
func spool(dir string, fill func(w io.Writer) (tarstream.Manifest, error)) (_ *Source, err error) {
	f, err := os.CreateTemp(dir, spoolPrefix+"*.tar")
	if err != nil {
		return nil, fmt.Errorf("create the spool file: %w", err)
	}
	s := &Source{file: f}
	if os.Remove(f.Name()) != nil {
		s.name = f.Name()
	}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	digest := tarstream.NewHasher()
	w := bufio.NewWriterSize(io.MultiWriter(tarstream.WithRoom(f), digest), 256<<10)
	if s.manifest, err = fill(w); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, fmt.Errorf("write the spool file: %w", err)
	}
	s.digest, s.size = digest.Digest(), digest.Size()
	return s, nil
}

const spoolPrefix = "sbx-workspace-"

// staleAfter is longer than any fetch: an older file has no owner.
const staleAfter = 48 * time.Hour

// sweepSpool removes what killed processes left. It ignores failures: the next run tries again.
func sweepSpool(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), spoolPrefix) { // the folder may be everybody's
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleAfter {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}
