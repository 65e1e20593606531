package ledger

import "encoding/json"

// Apply writes the set columns to row.
func (p Patch) Apply(row *Sandbox) {
	set(&row.Mode, p.Mode)
	set(&row.SpecHash, p.SpecHash)
	set(&row.Profile, p.Profile)
	set(&row.ProfileVersion, p.Version)
	setJSON(&row.Request, p.Request)
	setJSON(&row.Spec, p.Spec)
	setJSON(&row.Route, p.Route)
	set(&row.Extension, p.Extension)
	set(&row.Host, p.Host)
	set(&row.HostRef, p.HostRef)
	set(&row.Identity, p.Identity)
	set(&row.Handle, p.Handle)
	set(&row.Reachability, p.Reachability)
	setJSON(&row.WorkspaceBase, p.WorkspaceBase)
	set(&row.TTL, p.TTL)
	set(&row.MaxTTL, p.MaxTTL)
	set(&row.ReadyAt, p.ReadyAt)
	set(&row.ExpiresAt, p.ExpiresAt)
	set(&row.ClaimedUntil, p.ClaimedUntil)
	set(&row.SeenAliveAt, p.SeenAliveAt)
	set(&row.EndedAt, p.EndedAt)
	set(&row.Reason, p.Reason)
	set(&row.EndReason, p.EndReason)
	set(&row.EndEstimated, p.EndEstimated)
}

// Apply writes the set columns to row.
func (p SnapshotPatch) Apply(row *Snapshot) {
	set(&row.Handle, p.Handle)
	set(&row.Name, p.Name)
	set(&row.Kind, p.Kind)
	set(&row.SizeBytes, p.SizeBytes)
	set(&row.Digest, p.Digest)
	set(&row.Retention, p.Retention)
	set(&row.LapsesAt, p.LapsesAt)
	setJSON(&row.Request, p.Request)
	set(&row.Reason, p.Reason)
	set(&row.EndedAt, p.EndedAt)
}

func set[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

func setJSON(to *json.RawMessage, v json.RawMessage) {
	if v != nil {
		*to = v
	}
}
