package workspace

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// remove handles a path that the sandbox removed or replaced by another type: the old object goes if it is
// unchanged here.
func (s *syncer) remove(p string) error {
	b, had := s.base[p]
	t, stays := s.there[p]
	if !had || stays && (t.Type == b.Type || t.Type != tarstream.TypeDir && b.Type != tarstream.TypeDir) {
		return nil // new, or replaced in place by create
	}
	if insideGit(p) {
		return nil // history is only added to
	}
	here, ok, err := s.look(p)
	if err != nil {
		return s.failed("look at", p, err)
	}
	if !ok || stays && equal(here, t) {
		return nil
	}
	if !equal(here, b) {
		if stays {
			return nil // create reports it
		}
		return s.conflict(p, "deleted there, changed here")
	}
	if stays && s.guard(p, t) != "" {
		return nil // create reports it
	}
	return s.delete(p, here.Type == tarstream.TypeDir, stays)
}

func (s *syncer) delete(p string, isDir, replaced bool) error {
	if s.dry {
		if !isDir || s.emptyBut(p) {
			s.deleted(p, replaced)
		}
		return nil
	}
	parent, err := tarstream.OpenFolder(s.root, path.Dir(p))
	if err != nil {
		return s.failed("delete", p, err)
	}
	defer parent.Close()
	err = parent.Remove(path.Base(p))
	switch {
	case err == nil:
		s.deleted(p, replaced)
	case errors.Is(err, fs.ErrNotExist):
	case isDir && errors.Is(err, fs.ErrExist): // something of this side remains in it
	default:
		return s.failed("delete", p, err)
	}
	return nil
}

func (s *syncer) deleted(p string, replaced bool) {
	s.gone[p] = true
	if !replaced {
		s.report.Deleted = append(s.report.Deleted, shown(p))
	}
}

// emptyBut reports whether a dry run would have emptied the folder p.
func (s *syncer) emptyBut(p string) bool {
	dir, err := tarstream.OpenFolder(s.root, p)
	if err != nil {
		return false
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	for _, e := range entries {
		if !s.gone[p+"/"+e.Name()] {
			return false
		}
	}
	return err == nil
}

// create handles a path that is new or changed in the sandbox.
func (s *syncer) create(p string) error {
	t, ok := s.there[p]
	if !ok {
		return nil
	}
	here, exists, err := s.look(p)
	delete(s.gone, p)
	if err != nil {
		return s.failed("look at", p, err)
	}
	if exists && equal(here, t) {
		s.brought[firstName(t)] = p
		return nil
	}
	if why := s.guard(p, t); why != "" {
		s.blocked[p] = true
		return s.refuse(p, why)
	}
	if why := s.disagreement(p, t, here, exists); why != "" {
		s.blocked[p] = true
		return s.conflict(p, why)
	}
	if s.dry {
		return s.pretend(p, t)
	}
	return s.write(p, t, here, exists)
}

// disagreement says why p here is not what the sandbox's change assumes; "" if it is.
func (s *syncer) disagreement(p string, t, here tarstream.Entry, exists bool) string {
	b, had := s.base[p]
	crosses := func(a, b tarstream.Entry) bool { return (a.Type == tarstream.TypeDir) != (b.Type == tarstream.TypeDir) }
	switch {
	case s.blocked[path.Dir(p)]:
		return "its folder was not brought back"
	case exists && !s.hasBase:
		return "it differs, and its original is unknown"
	case exists && (!had || !equal(here, b)):
		return "changed there and here"
	case exists && crosses(here, t):
		return "a " + string(here.Type) + " here cannot be replaced by a " + string(t.Type)
	case !exists && had && !crosses(b, t):
		return "changed there, deleted here"
	}
	// A file became a folder or the reverse, and remove made room, perhaps in an earlier run that was cut
	// off.
	return ""
}

func (s *syncer) write(p string, t, here tarstream.Entry, exists bool) error {
	parent, err := tarstream.MakeFolder(s.root, path.Dir(p))
	if extensions.IsKind(err, extensions.KindConflict) {
		s.blocked[p] = true
		return s.conflict(p, noFolder)
	}
	if err != nil {
		return s.failed("create the folder of", p, err)
	}
	defer parent.Close()
	name := path.Base(p)
	switch t.Type {
	case tarstream.TypeDir:
		err = parent.Mkdir(name, 0o777)
	case tarstream.TypeSymlink:
		err = s.place(parent, p, here, exists, func(temp string) error { return parent.Symlink(t.Link, temp) })
	default:
		err = s.place(parent, p, here, exists, func(temp string) error {
			if s.linked(t, path.Join(path.Dir(p), temp)) {
				return nil
			}
			return s.copyFile(parent, temp, p, fileMode(t, here, exists))
		})
	}
	if errors.Is(err, errMoved) {
		return s.conflict(p, "it changed here just now")
	}
	if err != nil {
		return s.failed("write", p, err)
	}
	s.brought[firstName(t)] = p
	s.written(p)
	return nil
}

// pretend is write for a dry run.
func (s *syncer) pretend(p string, t tarstream.Entry) error {
	s.made[p] = t.Type == tarstream.TypeDir
	if !s.made[path.Dir(p)] {
		parent, err := tarstream.OpenFolder(s.root, path.Dir(p))
		if err == nil {
			_ = parent.Close()
		}
		if extensions.IsKind(err, extensions.KindConflict) {
			s.blocked[p] = true
			return s.conflict(p, noFolder)
		}
	}
	s.written(p)
	return nil
}

const noFolder = "its folder is not a folder here"

func (s *syncer) written(p string) {
	s.report.Written = append(s.report.Written, shown(p))
}

// fileMode keeps the permissions of a file that exists here; the sandbox decides only the execute bits.
func fileMode(t, here tarstream.Entry, exists bool) fs.FileMode {
	mode := fs.FileMode(0o666)
	if exists && here.Type == tarstream.TypeFile {
		mode = here.Mode &^ 0o111
	}
	if t.Mode&0o100 != 0 {
		mode |= mode & 0o444 >> 2
	}
	return mode
}

var errMoved = errors.New("it changed here just now")

// place creates the new object beside p and renames it over p, after checking once more that p is
// unchanged.
func (s *syncer) place(parent *os.Root, p string, before tarstream.Entry, had bool, fill func(temp string) error) error {
	temp := syncTemp(path.Base(p))
	if err := parent.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a crash
		return err
	}
	err := fill(temp)
	if err == nil {
		now, has, lookErr := s.look(p)
		if err = lookErr; err == nil && (has != had || has && !equal(before, now)) {
			err = errMoved
		}
	}
	if err == nil {
		err = parent.Rename(temp, path.Base(p))
	}
	if err != nil {
		_ = parent.Remove(temp)
	}
	return err
}

// linked makes temp another name of t's file if one of its names is here with the same content: a thousand
// names then take the space of one.
func (s *syncer) linked(t tarstream.Entry, temp string) bool {
	at, known := s.brought[firstName(t)]
	if !known && t.Same != "" {
		if here, ok, err := s.look(t.Same); err == nil && ok && equal(here, s.there[t.Same]) {
			at = t.Same
		}
		s.brought[t.Same] = at
	}
	return at != "" && s.root.Link(at, temp) == nil
}

// firstName returns the name that all names of a file refer to. That name may not be brought back itself,
// and may come after the others.
func firstName(t tarstream.Entry) string { return cmp.Or(t.Same, t.Path) }

func (s *syncer) copyFile(parent *os.Root, temp, p string, mode fs.FileMode) (err error) {
	to, err := parent.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, to.Close()) }()
	if err := s.copy.CopyTo(to, p); err != nil {
		return err
	}
	return to.Sync()
}

const syncTempPrefix = ".sandboxer-sync-"

// syncTemp returns the same name each time, so that a later run finds and replaces what a crash left.
func syncTemp(name string) string {
	h := tarstream.NewHasher()
	_, _ = h.Write([]byte(name))
	return syncTempPrefix + h.Digest()[:16]
}

func isSyncTemp(p string) bool { return strings.HasPrefix(path.Base(p), syncTempPrefix) }

// failed reports what this side refuses; everything below it is held back too.
func (s *syncer) failed(what, p string, err error) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	s.blocked[p] = true
	return s.refuse(p, "cannot "+what+" it here: "+extensions.Clean(bare(err).Error(), 300))
}
