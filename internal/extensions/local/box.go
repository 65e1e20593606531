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

// recordsName is the folder beside the sandboxes' folders that keeps, for each sandbox, a second copy of its
// record and how it ended.
const recordsName = "records"

// Suffixes of names in that folder.
const (
	copySuffix = ".json"
	endSuffix  = ".end"
)

// box is where one sandbox is kept: its folder, and the second copy of its record. People remove and move
// folders while the sandbox runs; the copy, else the handle, still identifies its process.
type box struct {
	id   extensions.ID
	root string
	dir  string
	told *process // its init as the handle names it; nil if it names none
}

func (s settings) box(id extensions.ID) box {
	return box{id: id, root: s.root, dir: filepath.Join(s.root, string(id))}
}

func (b box) path(name string) string { return filepath.Join(b.dir, name) }

func (b box) beside(suffix string) string {
	return filepath.Join(b.root, recordsName, string(b.id)+suffix)
}

// read returns the record: the folder's, else the copy, else what the handle says while that process runs. A
// folder without any is a half-made sandbox, whose record is empty but for the id. Empty files are what a power cut
// left of a sandbox that it ended.
func (b box) read() (record, error) {
	r, err := b.readFrom(b.path(recordName))
	cut := errors.Is(err, errCutOff)
	if cut || errors.Is(err, fs.ErrNotExist) {
		r, err = b.readFrom(b.beside(copySuffix))
	}
	switch {
	case errors.Is(err, errCutOff), cut && errors.Is(err, fs.ErrNotExist):
		return record{ID: b.id, State: stateReady, Init: &process{}}, nil
	case !errors.Is(err, fs.ErrNotExist):
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

// errCutOff is returned for an empty record.
var errCutOff = errors.New("the record is empty")

func (b box) readFrom(path string) (record, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return record{}, err
	}
	if len(raw) == 0 {
		return record{}, errCutOff
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return record{}, extensions.Errorf(extensions.KindInternal, "the record %s cannot be read: %w", path, err)
	}
	if r.ID != b.id {
		return record{}, extensions.Errorf(extensions.KindConflict, "%s contains the record of %s", path, extensions.Clean(string(r.ID), 40)).
			WithRemedy("do not rename folders of sandboxes")
	}
	if r.Version > recordVersion {
		return record{}, extensions.Errorf(extensions.KindUnsupported, "a newer sandboxer wrote the record of %s (form %d)", b.id, r.Version).
			WithRemedy("use the newer version")
	}
	return r, nil
}

// write stores the record twice, the copy first: the copy has whatever the folder has.
func (b box) write(r record) error {
	r.Version, r.ID = recordVersion, b.id
	copied := b.beside(copySuffix)
	err := fs.ErrNotExist
	for try := 0; try < 5 && errors.Is(err, fs.ErrNotExist); try++ { // removing the last record removes the folder
		if err = os.MkdirAll(filepath.Dir(copied), 0o700); err == nil {
			err = writeFile(copied, r, false)
		}
	}
	if err != nil {
		return err
	}
	return writeFile(b.path(recordName), r, false)
}

// adrift reports that the sandbox runs although its folder was removed or moved: nobody can use it, or move
// its deadline, any more.
func (b box) adrift(r record) bool { return r.Init.alive() && !exists(b.path(leaseName)) }

// lost reports that the sandbox ended and its folder is gone.
func (b box) lost(r record) bool { return !r.Init.alive() && !exists(b.dir) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// missing returns the error for a sandbox without its folder or lease.
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
	return fmt.Sprintf("can no longer be used: its folder %s was removed or moved while it ran; its init (process %d) still has to end", b.dir,
		r.Init.PID)
}

func (b box) tombstone() (lease.Tombstone, bool) {
	raw, err := os.ReadFile(b.beside(endSuffix))
	if err != nil {
		return lease.Tombstone{}, false
	}
	return lease.ParseTombstone(raw)
}

// forget removes what is kept beside the folder, which is already gone.
func (b box) forget() error {
	err := removeAll(b.beside(endSuffix), b.beside(copySuffix+tmpSuffix), b.beside(copySuffix))
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

// ids lists the sandboxes with a folder or a record here.
func (s settings) ids() ([]extensions.ID, error) {
	var ids []extensions.ID
	seen := map[extensions.ID]bool{}
	for _, dir := range []string{s.root, filepath.Join(s.root, recordsName)} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("listing sandboxes: %w", err)
		}
		for _, e := range entries {
			name, isCopy := strings.CutSuffix(e.Name(), copySuffix)
			id, err := extensions.ParseID(name)
			if err == nil && isCopy != e.IsDir() && !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}
