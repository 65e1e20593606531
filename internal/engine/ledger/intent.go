package ledger

import (
	"encoding/json"
	"time"
)

// IntentKind is the operation that an intent records. Stored: append only.
type IntentKind string

// Kinds of intents.
const (
	IntentCreate         IntentKind = "create"
	IntentDestroy        IntentKind = "destroy"
	IntentRecreate       IntentKind = "recreate"
	IntentExtend         IntentKind = "extend"
	IntentAdopt          IntentKind = "adopt"
	IntentSync           IntentKind = "sync" // workspace brought back
	IntentSnapshot       IntentKind = "snapshot"
	IntentDeleteSnapshot IntentKind = "delete-snapshot"
	IntentMode           IntentKind = "mode" // pause or resume
)

// IntentState is the state of an intent. Stored: append only.
type IntentState string

// States of an intent. Only Dispatched is open.
const (
	Dispatched IntentState = "dispatched" // a backend may have been called
	Confirmed  IntentState = "confirmed"
	Failed     IntentState = "failed"    // for certain
	Abandoned  IntentState = "abandoned" // another intent took over
	Adopted    IntentState = "adopted"   // recovery found the object and kept it
)

// Intent is one operation, recorded before its first external effect.
type Intent struct {
	Key        string
	Kind       IntentKind
	Subject    string // sandbox or snapshot id
	Account    string
	State      IntentState
	Holder     HolderID
	Fence      int64
	Generation int64           // of the sandbox, when it began
	Detail     json.RawMessage // the engine's own notes, without secrets
	Reason     string          // why failed or abandoned
	Metered    bool            // of a create or recreate: a vendor bills for it
	StartedAt  time.Time
	FinishedAt time.Time
}

// Nobody holds an operation that its run gave up before its end was known: the next run settles it.
const Nobody HolderID = "nobody"

// OpenIntent begins an operation and assigns the next fence of its subject. It abandons the open intent of
// a dead holder; that of another living holder is *Busy; replacing one's own needs Supersede.
type OpenIntent struct {
	Key       string // "" = the change's Key
	Kind      IntentKind
	Holder    HolderID
	Supersede bool
	Detail    json.RawMessage
	Metered   bool
}

// FinishIntent ends the open intent of the subject. If there is none, the change is *Stale.
type FinishIntent struct {
	Outcome IntentState // Confirmed | Failed | Abandoned | Adopted
	Reason  string
}

// IntentFilter selects open intents; zero fields select all.
type IntentFilter struct {
	Account string // "org/workspace", or "org" for all its workspaces
	Subject string
}
