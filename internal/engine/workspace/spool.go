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

// Source is a workspace's stream, whole and unchanging. It implements
// extensions.WorkspaceSource and may be opened by several readers at once.
type Source struct {
	file     *os.File
	name     string // "" where the file is unlinked already
	size     int64
	digest   string
	origin   string
	commit   string
	manifest tarstream.Manifest
}

var _ extensions.WorkspaceSource = (*Source)(nil)

// Open starts the stream anew. Close of the reader frees nothing; Source.Close does.
func (s *Source) Open(ctx context.Context) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return io.NopCloser(io.NewSectionReader(s.file, 0, s.size)), nil
}

// Digest is the lower-case hex SHA-256 of the stream.
func (s *Source) Digest() string { return s.digest }

// Size is the stream's length in bytes.
func (s *Source) Size() int64 { return s.size }

// Origin is the folder, or "URL@commit", without credentials.
func (s *Source) Origin() string { return s.origin }

// Manifest lists what the stream holds and what had to be left out. For a
// mirrored workspace it is the base to hand to SyncBack later.
func (s *Source) Manifest() tarstream.Manifest { return s.manifest }

// Close frees the spool. Readers opened before fail from then on.
func (s *Source) Close() error {
	err := s.file.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	return err
}

// spool writes a stream to a private file that, where the system allows it,
// has no name any more: nothing stays behind however this process ends.
func spool(dir string, fill func(w io.Writer) (tarstream.Manifest, error)) (_ *Source, err error) {
	f, err := os.CreateTemp(dir, spoolPrefix+"*.tar")
	if err != nil {
		return nil, fmt.Errorf("make the spool file: %w", err)
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

// staleAfter is more than any fetch takes: an older leftover has no owner.
const staleAfter = 48 * time.Hour

// sweepSpool removes what killed processes left. Failures do not matter: the
// next run tries again.
func sweepSpool(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), spoolPrefix) && time.Since(info.ModTime()) > staleAfter {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}
