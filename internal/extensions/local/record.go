package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
)

// Names in a sandbox's folder.
const (
	recordName = "record.json"
	leaseName  = "lease"
	endName    = "end"
	socketName = "s"
	groupsName = "groups" // without walls: the sessions to kill
	filesName  = "files"  // without walls: workspace and home
)

const recordVersion = 1

// States of a record.
const (
	stateMaking  = "making"  // may be half made
	stateWaiting = "waiting" // whole, its readiness probe has not succeeded yet
	stateReady   = "ready"
)

// record is what is known of one sandbox, written before anything of it is
// made, without any secret.
type record struct {
	Version    int               `json:"version"`
	ID         extensions.ID     `json:"id"`
	Account    string            `json:"account"`
	Generation int64             `json:"generation"`
	Labels     map[string]string `json:"labels,omitempty"`
	State      string            `json:"state"`
	Mode       string            `json:"mode,omitempty"` // how it is walled: namespaces, bubblewrap, none
	Access     string            `json:"access"`
	Init       *process          `json:"init,omitempty"`
	Keeper     *process          `json:"keeper,omitempty"` // removes the cgroups when the init is gone
	StartedAt  time.Time         `json:"started_at,omitzero"`
	Deadline   time.Time         `json:"deadline"` // at create; the lease decides
	Cgroups    []string          `json:"cgroups,omitempty"`
	Memory     string            `json:"memory,omitempty"`     // what bounds the memory of programs, with walls
	Unenforced []string          `json:"unenforced,omitempty"` // limits taken on best effort
}

// process names one process for ever: a pid alone is reused.
type process struct {
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"` // clock ticks after boot; 0 where the system does not tell
	BootID string `json:"boot_id"`
}

// box is one sandbox's folder.
type box struct {
	id  extensions.ID
	dir string
}

func (s settings) box(id extensions.ID) box { return box{id, filepath.Join(s.root, string(id))} }

func (b box) path(name string) string { return filepath.Join(b.dir, name) }

// read returns the record; a folder without one is a sandbox half made, whose
// record is empty but for the id.
func (b box) read() (record, error) {
	empty := record{ID: b.id, State: stateMaking}
	raw, err := os.ReadFile(b.path(recordName))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(b.dir); err != nil {
			return record{}, err
		}
		return empty, nil
	}
	if err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return record{}, extensions.Errorf(extensions.KindInternal, "the record %s cannot be read: %w", b.path(recordName), err)
	}
	if r.ID != b.id {
		return record{}, extensions.Errorf(extensions.KindConflict, "the folder %s holds the record of %s", b.dir, extensions.Clean(string(r.ID), 40)).
			WithRemedy("do not rename folders of sandboxes")
	}
	if r.Version > recordVersion {
		return record{}, extensions.Errorf(extensions.KindUnsupported, "the record of %s was written by a newer sandboxer (form %d)", b.id, r.Version).
			WithRemedy("use the newer version")
	}
	return r, nil
}

func (b box) write(r record) error {
	r.Version, r.ID = recordVersion, b.id
	return writeFile(b.path(recordName), r)
}

// writeFile replaces path by v as JSON: whole or not at all, also after a
// power cut.
func writeFile(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(append(raw, '\n')); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// deadline is the lease's, or the record's where there is no lease yet.
func (b box) deadline(r record) time.Time {
	f, err := os.Open(b.path(leaseName))
	if err != nil {
		return r.Deadline
	}
	defer func() { _ = f.Close() }()
	if t, err := lease.Read(f); err == nil {
		return t
	}
	return r.Deadline
}

func (b box) setDeadline(t time.Time) error {
	f, err := os.OpenFile(b.path(leaseName), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(lease.Write(f, t), f.Sync(), f.Close())
}

func (b box) tombstone() (lease.End, bool) {
	raw, err := os.ReadFile(b.path(endName))
	if err != nil {
		return lease.End{}, false
	}
	return lease.ParseEnd(raw)
}

func (s settings) ids() ([]extensions.ID, error) {
	entries, err := os.ReadDir(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing sandboxes: %w", err)
	}
	var ids []extensions.ID
	for _, e := range entries {
		if id, err := extensions.ParseID(e.Name()); err == nil && e.IsDir() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
