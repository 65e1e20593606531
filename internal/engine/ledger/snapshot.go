package ledger

import (
	"encoding/json"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// SnapshotState is the state of a snapshot. Stored: append only.
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
	SnapshotDeleting: {SnapshotReady, SnapshotFailed, SnapshotDeleted}, // ready: not deleted after all
}

// Snapshot is one kept image; it outlives its sandbox.
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
	Identity  string // see Sandbox
	Handle    extensions.SnapshotHandle
	Kind      string
	SizeBytes int64
	Digest    string
	Arch      string          // of the place, as Go names it; "" = unknown
	Payer     string          // who pays for keeping it: who paid for its sandbox; see Sandbox
	Request   json.RawMessage // arguments, for import
	Reason    string
	CreatedAt time.Time
	Retention time.Duration // how long its owner keeps it; 0 = until it is deleted
	LapsesAt  time.Time     // when the place deletes it by itself, as it last said: use may move that; zero = never
	EndedAt   time.Time
	UpdatedAt time.Time
}

// KeptUntil returns when its owner has it deleted; zero = never.
func (s Snapshot) KeptUntil() time.Time {
	if s.Retention == 0 {
		return time.Time{}
	}
	return s.CreatedAt.Add(s.Retention)
}

// ExpiresAt returns when it ends by itself, or is to be deleted; zero = never.
func (s Snapshot) ExpiresAt() time.Time {
	end := s.KeptUntil()
	if end.IsZero() || !s.LapsesAt.IsZero() && s.LapsesAt.Before(end) {
		end = s.LapsesAt
	}
	return end
}

// BeginSnapshot requests a snapshot. Key, Holder, ID, Account and SandboxID are required; the sandbox must
// exist.
type BeginSnapshot struct {
	Key                      string
	Holder                   HolderID
	ID                       string
	Account                  string
	Name                     string
	SandboxID                extensions.ID
	Extension, Host, HostRef string
	Identity                 string
	Arch                     string
	Retention                time.Duration
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
	// Meter opens what counts the keeping, or closes it, with its charges. Nothing else can be done to it.
	Meter  bank.MeterOps
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

// SnapshotFilter selects snapshots; zero fields select all.
type SnapshotFilter struct {
	Account string // "org/workspace", or "org" for all its workspaces
	Live    bool   // not deleted
}

// SnapshotPatch sets columns; nil fields stay unchanged.
type SnapshotPatch struct {
	Handle    *extensions.SnapshotHandle
	Name      *string
	Kind      *string
	SizeBytes *int64
	Digest    *string
	Retention *time.Duration
	LapsesAt  *time.Time
	Request   json.RawMessage
	Reason    *string
	EndedAt   *time.Time
}
