package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
)

// recordsName is the folder beside the sandboxes' own that keeps, for each, a
// second copy of its record, and how it ended.
const recordsName = "records"

// Endings of names in that folder.
const (
	copyEnding = ".json"
	endEnding  = ".end"
)

// box is where one sandbox is kept: a folder with what belongs to it, and the
// second copy of its record. People remove and move folders while the sandbox
// runs; the copy, else the handle, still tells which process that is.
type box struct {
	id   extensions.ID
	root string
	dir  string
	told *process // its init as a handle names it, nil where none does
}

func (s settings) box(id extensions.ID) box {
	return box{id: id, root: s.root, dir: filepath.Join(s.root, string(id))}
}

func (b box) path(name string) string { return filepath.Join(b.dir, name) }

func (b box) beside(ending string) string {
	return filepath.Join(b.root, recordsName, string(b.id)+ending)
}

// read returns the record: its folder's, else the copy, else what the handle
// tells while that process runs. A folder without any is a sandbox half made,
// whose record is empty but for the id.
func (b box) read() (record, error) {
	r, err := b.readFrom(b.path(recordName))
	if errors.Is(err, fs.ErrNotExist) {
		r, err = b.readFrom(b.beside(copyEnding))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if b.told.serves(b.id) {
		return record{ID: b.id, State: stateReady, Init: b.told, Cgroups: likelyCgroups(b.id)}, nil
	}
	if _, err := os.Stat(b.dir); err != nil {
		return record{}, err
	}
	return record{ID: b.id, State: stateMaking}, nil
}

func (b box) readFrom(path string) (record, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return record{}, extensions.Errorf(extensions.KindInternal, "the record %s cannot be read: %w", path, err)
	}
	if r.ID != b.id {
		return record{}, extensions.Errorf(extensions.KindConflict, "%s holds the record of %s", path, extensions.Clean(string(r.ID), 40)).
			WithRemedy("do not rename folders of sandboxes")
	}
	if r.Version > recordVersion {
		return record{}, extensions.Errorf(extensions.KindUnsupported, "the record of %s was written by a newer sandboxer (form %d)", b.id, r.Version).
			WithRemedy("use the newer version")
	}
	return r, nil
}

// write puts the record down twice, the copy first: what is in the folder is in
// the copy too.
func (b box) write(r record) error {
	r.Version, r.ID = recordVersion, b.id
	copied := b.beside(copyEnding)
	err := fs.ErrNotExist
	for try := 0; try < 5 && errors.Is(err, fs.ErrNotExist); try++ { // who removes the last record removes the folder
		if err = os.MkdirAll(filepath.Dir(copied), 0o700); err == nil {
			err = writeFile(copied, r)
		}
	}
	if err != nil {
		return err
	}
	return writeFile(b.path(recordName), r)
}

// adrift reports that the sandbox runs and its folder was removed or moved:
// nobody can use it, or move its end, any more.
func (b box) adrift(r record) bool { return r.Init.alive() && !exists(b.path(leaseName)) }

// lost reports that the sandbox ended and its folder is gone too.
func (b box) lost(r record) bool { return !r.Init.alive() && !exists(b.dir) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// missing is the error for a sandbox whose folder or lease is not there.
func (b box) missing() error {
	r, err := b.read()
	switch {
	case err == nil && b.adrift(r):
		return extensions.Errorf(extensions.KindNotFound, "%s %s", b.id, b.driftsBecause(r)).
			WithRemedy("destroy it, or apply again: either ends it first")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return extensions.Errorf(extensions.KindNotFound, "%s does not exist", b.id)
}

func (b box) driftsBecause(r record) string {
	return fmt.Sprintf("cannot be used any more: its folder %s was removed or moved while it ran; its init (process %d) still has to end", b.dir, r.Init.PID)
}

func (b box) tombstone() (lease.End, bool) {
	raw, err := os.ReadFile(b.beside(endEnding))
	if err != nil {
		return lease.End{}, false
	}
	return lease.ParseEnd(raw)
}

// forget removes what is kept beside the folder, which is gone already.
func (b box) forget() error {
	err := removeAll(b.beside(endEnding), b.beside(copyEnding+tmpEnding), b.beside(copyEnding))
	removeIfEmpty(filepath.Dir(b.beside("")))
	return err
}

func removeAll(paths ...string) error {
	var errs []error
	for _, p := range paths {
		errs = append(errs, os.RemoveAll(p))
	}
	return errors.Join(errs...)
}

// ids lists the sandboxes that have a folder or a record here.
func (s settings) ids() ([]extensions.ID, error) {
	var ids []extensions.ID
	seen := map[extensions.ID]bool{}
	for _, dir := range []string{s.root, filepath.Join(s.root, recordsName)} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("listing sandboxes: %w", err)
		}
		for _, e := range entries {
			name, isCopy := strings.CutSuffix(e.Name(), copyEnding)
			id, err := extensions.ParseID(name)
			if err == nil && isCopy != e.IsDir() && !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}
