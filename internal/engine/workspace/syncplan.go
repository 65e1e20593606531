package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// syncer compares three sides of each path: base (where the workspace started), there (the sandbox's copy)
// and here (the local folder).
type syncer struct {
	ctx      context.Context
	root     *os.Root            // here
	copy     *tarstream.Contents // there
	ignore   ignore
	dry      bool
	hasBase  bool
	noDelete bool // what the copy lacks may exist there all the same
	base     map[string]tarstream.Entry
	there    map[string]tarstream.Entry
	gone     map[string]bool   // deleted, or in a dry run counted as such
	made     map[string]bool   // folders that a dry run would have created
	blocked  map[string]bool   // not brought back, and neither is anything below
	brought  map[string]string // by a file's first name there: a name of it that is the same here; "" = none
	missing  map[string]bool   // SyncOptions.Missing
	skipped  map[string]bool   // reported instead of brought back
	report   Report
}

// run deletes deepest first, then writes from the top, so a folder can become a file and a file a folder.
func (s *syncer) run() error {
	changed := s.changed()
	if s.hasBase && !s.noDelete && len(s.there) == 0 && len(s.base) > 0 {
		return s.refuse(".", "the sandbox's workspace is empty; nothing is deleted here")
	}
	s.gone, s.made, s.blocked = map[string]bool{}, map[string]bool{}, map[string]bool{}
	s.brought = map[string]string{}
	for _, p := range slices.Backward(changed) {
		if err := s.step(p, s.remove); err != nil {
			return err
		}
	}
	for _, p := range changed {
		if err := s.step(p, s.create); err != nil {
			return err
		}
	}
	return nil
}

func (s *syncer) step(p string, do func(string) error) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.skipped[p] || s.below(s.missing, p) {
		return nil // already reported
	}
	return do(p)
}

// changed lists the paths that the sandbox changed, sorted. Other paths stay, whatever happened to them
// here.
func (s *syncer) changed() []string {
	var out []string
	for p, t := range s.there {
		b, ok := s.base[p]
		if !ok || !equal(t, b) {
			out = append(out, p)
		}
	}
	for p, b := range s.base {
		if _, ok := s.there[p]; !ok && !s.noDelete && !s.ignore.skip(p, b.Type == tarstream.TypeDir) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, tarstream.ComparePaths)
	return out
}

func equal(a, b tarstream.Entry) bool {
	if a.Type != b.Type {
		return false
	}
	switch a.Type {
	case tarstream.TypeFile:
		return a.SHA256 == b.SHA256 && a.Mode&0o100 == b.Mode&0o100
	case tarstream.TypeSymlink:
		return a.Link == b.Link
	}
	return true
}

// typeOther is a type that a stream cannot hold, such as a socket or a device.
const typeOther tarstream.Type = "special file"

// look observes p here without following a link. ok is false if nothing exists.
func (s *syncer) look(p string) (e tarstream.Entry, ok bool, err error) {
	if s.gone[p] {
		return e, false, nil
	}
	parent, err := tarstream.OpenFolder(s.root, path.Dir(p))
	if errors.Is(err, fs.ErrNotExist) || extensions.IsKind(err, extensions.KindConflict) {
		return e, false, nil // nothing exists below a file or link
	}
	if err != nil {
		return e, false, err
	}
	defer parent.Close()
	info, err := parent.Lstat(path.Base(p))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e, false, nil
	case err != nil:
		return e, false, err
	case info.IsDir():
		return tarstream.Entry{Path: p, Type: tarstream.TypeDir, Mode: info.Mode().Perm()}, true, nil
	case info.Mode().Type() != 0 && info.Mode().Type() != fs.ModeSymlink:
		return tarstream.Entry{Path: p, Type: typeOther}, true, nil
	}
	// A file that grew beyond any limit simply differs from what is known.
	m, err := tarstream.PackPath(s.ctx, io.Discard, parent, path.Base(p), tarstream.Options{MaxBytes: 1 << 50})
	if err != nil {
		return e, false, err
	}
	if len(m.Entries) != 1 {
		return tarstream.Entry{Path: p, Type: typeOther}, true, nil
	}
	e = m.Entries[0]
	e.Path = p
	return e, true, nil
}

func (s *syncer) conflict(p, reason string) error {
	s.skip(p)
	s.report.Conflicts = append(s.report.Conflicts, Conflict{shown(p), reason})
	return nil
}

func (s *syncer) refuse(p, reason string) error {
	s.skip(p)
	s.report.Refused = append(s.report.Refused, Conflict{shown(p), reason})
	return nil
}

func (s *syncer) skip(p string) {
	if s.skipped == nil {
		s.skipped = map[string]bool{}
	}
	s.skipped[p] = true
}

// nextBase returns what both sides now agree on: the sandbox's copy, or the old base where the copy was
// not brought back or is unknown.
func (s *syncer) nextBase() tarstream.Manifest {
	var next tarstream.Manifest
	if !s.hasBase {
		return next
	}
	for p, t := range s.there {
		if !s.kept(p) {
			next.Entries = append(next.Entries, t)
		}
	}
	for p, b := range s.base {
		_, stays := s.there[p]
		if s.kept(p) || !stays && (s.noDelete || s.ignore.skip(p, b.Type == tarstream.TypeDir)) {
			next.Entries = append(next.Entries, b)
		}
	}
	slices.SortFunc(next.Entries, func(a, b tarstream.Entry) int { return tarstream.ComparePaths(a.Path, b.Path) })
	return next
}

// kept reports whether p, or a folder above it, was not brought back.
func (s *syncer) kept(p string) bool { return s.below(s.skipped, p) || s.below(s.blocked, p) }

// below reports whether p, or a folder above it, is in the set.
func (s *syncer) below(set map[string]bool, p string) bool {
	for len(set) > 0 {
		if set[p] {
			return true
		}
		if p == "." {
			break
		}
		p = path.Dir(p)
	}
	return false
}

// shown returns a path for people: quoted if it would mislead.
func shown(p string) string {
	if extensions.Clean(p, 300) == p {
		return p
	}
	return tarstream.Quote(p)
}
