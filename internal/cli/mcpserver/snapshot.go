package mcpserver

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type snapshotInput struct {
	ID   string `json:"id" jsonschema:"id of the sandbox"`
	Live bool   `json:"live,omitempty" jsonschema:"do not pause it meanwhile; files may then be from different moments"`
	End  bool   `json:"allow_end,omitempty" jsonschema:"allow the snapshot to end the sandbox, where the place has no other snapshots"`
}

type snapshotOutput struct {
	ID      string `json:"id"`
	Sandbox string `json:"sandbox"`
	Kind    string `json:"kind" jsonschema:"what it holds: metadata, workspace, filesystem or memory"`
	Bytes   int64  `json:"size_bytes"`
}

func snapshotView(v engine.SnapshotView) snapshotOutput {
	return snapshotOutput{ID: v.ID, Sandbox: string(v.SandboxID), Kind: v.Kind, Bytes: v.SizeBytes}
}

// snapshot keeps one that ends by itself, should this server be killed, when a sandbox made now would.
func (s *Server) snapshot(ctx context.Context, in snapshotInput, notify func(engine.Notice)) (snapshotOutput, error) {
	m, err := s.find(in.ID)
	if err != nil {
		return snapshotOutput{}, err
	}
	s.mu.Lock()
	full := len(s.snapshots)+s.keeping >= s.limits.Sandboxes
	if !full {
		s.keeping++
	}
	s.mu.Unlock()
	if full {
		return snapshotOutput{}, extensions.Errorf(extensions.KindExhausted, "this session allows %d snapshots", s.limits.Sandboxes).
			WithRemedy("delete one with sandbox_destroy")
	}
	v, err := s.engine.Snapshot(ctx, m.Receipt, engine.SnapshotRequest{Live: in.Live, AllowEnd: in.End,
		Retention: s.limits.TTL.Round(time.Second).String()})
	tell(notify, v.Notices)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeping--
	if v.ID != "" { // also of a failed one, which may be there
		s.snapshots[v.ID] = v
	}
	if err != nil {
		return snapshotOutput{}, err
	}
	return snapshotView(v), nil
}

func (s *Server) forget(ctx context.Context, v engine.SnapshotView, notify func(engine.Notice)) error {
	notices, err := s.engine.DeleteSnapshot(ctx, v, false)
	tell(notify, notices)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.snapshots, v.ID)
	return nil
}
