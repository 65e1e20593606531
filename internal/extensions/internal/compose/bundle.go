package compose

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// MaxFile is the largest file, in bytes, that reading a stack may need.
const MaxFile = 1 << 20

// Bundle is the index of a tar stream: what exists, without its large files.
// Names are slash-separated, relative and clean; "." is the root.
type Bundle struct {
	entries map[string]*Entry
}

// EntryType is what an entry is.
type EntryType byte

// The three types a source's stream is limited to.
const (
	TypeDir     EntryType = 'd'
	TypeFile    EntryType = 'f'
	TypeSymlink EntryType = 'l'
)

// Entry is one name in a bundle.
type Entry struct {
	Name   string
	Type   EntryType
	Size   int64  // bytes, of files
	Mode   uint32 // permission bits
	Link   string // as stored, of symlinks
	Digest string // lower-case hex SHA-256 of a file's content
	data   []byte // of files up to MaxFile
}

// ReadBundle indexes the source.
func ReadBundle(_ context.Context, _ extensions.WorkspaceSource) (*Bundle, error) {
	return nil, extensions.Errorf(extensions.KindInternal, "not read yet")
}

// Lookup follows symbolic links inside the bundle and returns the entry a name
// leads to, or nil where there is none or a link leaves the bundle.
func (b *Bundle) Lookup(name string) *Entry { return b.entries[name] }

// ReadFile returns the content of the file the name leads to, at most MaxFile.
func (b *Bundle) ReadFile(_ string) ([]byte, error) {
	return nil, extensions.Errorf(extensions.KindInternal, "not read yet")
}

// TreeDigest is the lower-case hex SHA-256 over everything a build of the
// folder sees: names, types, permission bits, link targets and contents, with
// its .dockerignore honoured. dockerfile is counted even where it is ignored or
// lies elsewhere in the bundle; it is relative to the bundle's root.
func (b *Bundle) TreeDigest(_, _ string) (string, error) {
	return "", extensions.Errorf(extensions.KindInternal, "not read yet")
}
