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

// syncer compares three sides of each path: base (where the workspace
// started), there (the sandbox's copy) and here (the local folder).
type syncer struct {
	ctx      context.Context
	root     *os.Root            // here
	copy     *tarstream.Contents // there
	ignore   ignore
	dry      bool
	hasBase  bool
	noDelete bool // what is missing in the copy may be there all the same
	base     map[string]tarstream.Entry
	there    map[string]tarstream.Entry
	gone     map[string]bool   // deleted by now, or in a dry run taken for it
	made     map[string]bool   // folders a dry run would have made
	blocked  map[string]bool   // not brought back, so neither is what lies below
	brought  map[string]string // by a file's first name there, a name of it that is here as it is there; "" = none
	missing  map[string]bool   // SyncOptions.Missing
	held     map[string]bool   // reported instead of brought back
	report   Report
}

// run deletes deepest first, then writes from the top: a folder can become a
// file and a file a folder.
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
	if s.held[p] || s.below(s.missing, p) {
		return nil // it is reported already
	}
	return do(p)
}

// changed lists the paths the sandbox changed, sorted. All else is of no
// concern: whatever happened here stays.
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

// typeOther is what a stream cannot hold: a socket, a device.
const typeOther tarstream.Type = "special file"

// look observes p here without following a link. ok is false where nothing is.
func (s *syncer) look(p string) (e tarstream.Entry, ok bool, err error) {
	if s.gone[p] {
		return e, false, nil
	}
	parent, err := tarstream.OpenFolder(s.root, path.Dir(p))
	if errors.Is(err, fs.ErrNotExist) || extensions.IsKind(err, extensions.KindConflict) {
		return e, false, nil // below a file or link nothing is
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
	// A file that grew beyond any limit is simply not equal to what we know.
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
	s.hold(p)
	s.report.Conflicts = append(s.report.Conflicts, Conflict{shown(p), reason})
	return nil
}

func (s *syncer) refuse(p, reason string) error {
	s.hold(p)
	s.report.Refused = append(s.report.Refused, Conflict{shown(p), reason})
	return nil
}

func (s *syncer) hold(p string) {
	if s.held == nil {
		s.held = map[string]bool{}
	}
	s.held[p] = true
}

// nextBase is what both sides agree on now: the sandbox's copy, except where
// it was not brought back or is not known; there the old base goes on.
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

// kept reports that p, or a folder above it, was not brought back.
func (s *syncer) kept(p string) bool { return s.below(s.held, p) || s.below(s.blocked, p) }

// below reports that p, or a folder above it, is in the set.
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

// shown is a path as people read it: quoted where it would mislead.
func shown(p string) string {
	if extensions.Clean(p, 300) == p {
		return p
	}
	return tarstream.Quote(p)
}
