package local

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
)

// Names in a sandbox's folder.
const (
	recordName = "record.json"
	leaseName  = "lease"
	socketName = "s"
	groupsName = "groups" // without walls: the sessions to kill
	filesName  = "files"  // without walls: workspace and home
)

const recordVersion = 1

// States of a record.
const (
	stateMaking  = "making"  // may be half-made
	stateWaiting = "waiting" // complete, but its readiness probe has not succeeded yet
	stateReady   = "ready"
)

// record is what is known of one sandbox, without secrets. It is written before anything of the sandbox
// exists.
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
	Deadline   time.Time         `json:"deadline,omitzero"` // the lease decides
	Cgroups    []string          `json:"cgroups,omitempty"`
	Memory     string            `json:"memory,omitempty"`     // what bounds the programs' memory, with walls
	Unenforced []string          `json:"unenforced,omitempty"` // limits taken on best effort
}

// process identifies one process forever: a pid alone is reused.
type process struct {
	BootID string `json:"boot_id"`
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"` // clock ticks after boot; 0 if the system does not say
}

const tmpSuffix = ".tmp"

// writeFile replaces path by v as JSON, completely or not at all. Only durable holds that across a power cut, too, after
// which the file may be empty otherwise: nothing of a sandbox outlives one, so its record need not wait for the disk.
func writeFile(path string, v any, durable bool) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp := path + tmpSuffix
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(append(raw, '\n')); err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// deadline returns the lease's deadline, or the record's if there is no lease yet.
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
	return errors.Join(lease.Write(f, t), f.Close())
}
