package ledger

import (
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// SnapshotState is where a snapshot is. Stored: append only.
type SnapshotState string

// States of a snapshot.
const (
	SnapshotCreating SnapshotState = "creating"
	SnapshotReady    SnapshotState = "ready"
	SnapshotFailed   SnapshotState = "failed" // something may be left
	SnapshotDeleting SnapshotState = "deleting"
	SnapshotDeleted  SnapshotState = "deleted"
)

var snapshotEdges = map[SnapshotState][]SnapshotState{
	SnapshotCreating: {SnapshotReady, SnapshotFailed, SnapshotDeleting, SnapshotDeleted},
	SnapshotReady:    {SnapshotFailed, SnapshotDeleting},
	SnapshotFailed:   {SnapshotReady, SnapshotDeleting},
	SnapshotDeleting: {SnapshotFailed, SnapshotDeleted},
}

// Snapshot is one kept checkpoint; it outlives its sandbox.
type Snapshot struct {
	ID        string
	Account   string
	Name      string
	SandboxID extensions.ID
	State     SnapshotState
	Fence     int64
	Extension string // binding id
	Host      string
	HostRef   string
	Handle    extensions.SnapshotHandle
	Kind      string
	SizeBytes int64
	Digest    string
	Request   json.RawMessage // arguments, for import
	Reason    string
	CreatedAt time.Time
	EndedAt   time.Time
	UpdatedAt time.Time
}

// BeginSnapshot asks for a snapshot. Key, Holder, ID, Account and SandboxID
// are required; the sandbox must exist.
type BeginSnapshot struct {
	Key                      string
	Holder                   HolderID
	ID                       string
	Account                  string
	Name                     string
	SandboxID                extensions.ID
	Extension, Host, HostRef string
	Request                  json.RawMessage
	CreatedAt                time.Time // zero = now
	Event                    Note      // Type defaults to "snapshot.creating"
}

// SnapshotChange is Change for snapshots.
type SnapshotChange struct {
	ID     string
	Key    string
	Expect SnapshotExpect
	To     SnapshotState // "" stays
	Patch  SnapshotPatch
	Finish *FinishIntent
	Intent *OpenIntent
	Event  Note // Type defaults to "snapshot." and the state
}

// SnapshotExpect is Expect for snapshots.
type SnapshotExpect struct {
	States []SnapshotState
	Fence  int64
	Holder HolderID
}

// SnapshotPatch sets columns; nil fields stay.
type SnapshotPatch struct {
	Handle    *extensions.SnapshotHandle
	Name      *string
	Kind      *string
	SizeBytes *int64
	Digest    *string
	Request   json.RawMessage
	Reason    *string
	EndedAt   *time.Time
}

// SnapshotFilter selects snapshots; zero fields select all.
type SnapshotFilter struct {
	Account   string // org/workspace, or an org for all of its
	SandboxID extensions.ID
	States    []SnapshotState
	Live      bool // leaves out deleted ones
}
