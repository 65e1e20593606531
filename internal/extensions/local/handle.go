package local

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handleVersion = 1

// handleData distinguishes this machine and folder from others, and identifies the sandbox's process if all
// its records are gone. Its names are in the order in which the ledger keeps them, so that a handle reads the
// same everywhere.
type handleData struct {
	Init    *process `json:"init,omitempty"`
	Machine string   `json:"machine"`
	Root    string   `json:"root"`
}

func (s settings) handle(rec record) extensions.Handle {
	data, _ := json.Marshal(handleData{Init: rec.Init, Machine: machineID(), Root: s.root}) // strings and numbers cannot fail
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: rec.ID, Ref: string(rec.ID), Data: data}
}

// resolve checks that h is a handle of this extension and this place. A handle of another machine or state
// folder is KindUnreachable: nothing can be said from here.
func (s settings) resolve(h extensions.Handle) (box, error) {
	if h.Extension != Handler || h.Version > handleVersion || h.Ref != string(h.ID) {
		return box{}, extensions.Errorf(extensions.KindInvalid, "this version does not read this handle of %s", Handler)
	}
	if _, err := extensions.ParseID(string(h.ID)); err != nil {
		return box{}, err
	}
	var d handleData
	if err := json.Unmarshal(h.Data, &d); err != nil {
		return box{}, extensions.Errorf(extensions.KindInvalid, "the handle's data cannot be read: %w", err)
	}
	if d.Machine != machineID() {
		return box{}, extensions.Errorf(extensions.KindUnreachable, "%s was created on another machine: %w", h.ID, extensions.ErrElsewhere).
			WithRemedy("run there, or drop it from the state with a removed block; it expires on its own")
	}
	if d.Root != s.root {
		return box{}, extensions.Errorf(extensions.KindUnreachable, "%s is recorded in %s, not in %s: %w", h.ID, d.Root, s.root,
			extensions.ErrElsewhere).
			WithRemedy("use the state folder and user that created it")
	}
	bx := s.box(h.ID)
	bx.told = d.Init
	return bx, nil
}

// machineID names this machine in handles: a digest of the system's own id, which must not be shown, or of
// the host name if there is none.
var machineID = sync.OnceValue(func() string {
	name, err := os.ReadFile("/etc/machine-id")
	if err != nil || strings.TrimSpace(string(name)) == "" {
		host, _ := os.Hostname()
		name = []byte("host " + host)
	}
	sum := sha256.Sum256(append([]byte("sandboxer local "), name...))
	return hex.EncodeToString(sum[:8])
})
