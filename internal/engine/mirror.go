package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/workspace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// checkWorkspace refuses, without network and without writing, a source that
// cannot work.
func checkWorkspace(w extensions.Workspace) error {
	if w.Mode == extensions.WorkspaceMirror && w.Access == extensions.AccessRW {
		if err := workspace.CheckMirror(w.Repo); err != nil {
			return err
		}
	}
	return workspace.Check(w.Repo, w.Ref)
}

// openSource packs the workspace; the caller closes it. nil = start empty.
func (e *Engine) openSource(ctx context.Context, spec extensions.Spec) (*workspace.Source, error) {
	if spec.Workspace.Repo == "" {
		return nil, nil
	}
	return workspace.Open(ctx, spec.Workspace.Repo, spec.Workspace.Ref, workspace.Options{
		SpoolDir:    filepath.Join(e.stateDir, "spool"),
		FullHistory: slices.Contains(spec.Requires.Capabilities, workspace.RequirementFullHistory),
	})
}

// SyncBack brings a mirrored workspace back now. Files changed on both sides
// are returned as conflicts and left alone on this side.
func (e *Engine) SyncBack(ctx context.Context, rec Receipt) (changed, conflicts []string, err error) {
	row, known := e.rowFor(ctx, rec)
	dir := rec.Mirror
	if known {
		dir = mirrorOf(row)
	}
	if dir == "" {
		return nil, nil, invalid("sandbox %s has no mirrored workspace", "use a profile with workspace mode mirror and access rw", rec.ID)
	}
	b, h, err := e.enter(ctx, rec)
	if err != nil {
		return nil, nil, err
	}
	row.Handle = h
	report, err := e.syncBack(ctx, b, row, dir)
	return report.Changed(), report.Conflicts, err
}

// syncBack downloads the workspace and merges it into dir.
func (e *Engine) syncBack(ctx context.Context, b *opened, row ledger.Sandbox, dir string) (workspace.Report, error) {
	x, err := power[extensions.FileTransfer](e, b, extensions.PowerFiles)
	if err != nil {
		return workspace.Report{}, err
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		c := call{op: "download", binding: b.binding.ID, id: row.ID, timeout: timeoutProvision, once: true}
		err := e.invoke(ctx, c, func(ctx context.Context) error { return x.Download(ctx, row.Handle, ".", w) })
		_ = w.CloseWithError(err) // never fails; nil means end of file
		done <- err
	}()
	report, err := workspace.SyncBack(ctx, dir, row.WorkspaceBase, r)
	_ = r.CloseWithError(errors.New("the workspace could not be brought back")) // ends the download if it still runs
	if derr := <-done; derr != nil && err == nil {
		err = derr
	}
	return report, err
}

// syncBeforeEnd brings a mirrored workspace back before its sandbox ends. A
// failure stops the end, unless there is nothing to bring back any more: work
// is not thrown away silently.
func (e *Engine) syncBeforeEnd(ctx context.Context, b *opened, row ledger.Sandbox, dir string, report *DestroyReport) error {
	if dir == "" || row.Handle.IsZero() {
		return nil
	}
	o, err := e.observeOne(ctx, b, row.Handle)
	if err != nil {
		return err
	}
	if o.Phase != extensions.PhaseReady && o.Phase != extensions.PhasePaused {
		report.Notices = append(report.Notices, Notice{Summary: "The mirrored workspace could not be brought back",
			Detail: fmt.Sprintf("%s had ended already (%s), so changes made in it since the last sync are lost.", row.ID, o.Phase)})
		return nil
	}
	r, err := e.syncBack(ctx, b, row, dir)
	if err != nil {
		var x *extensions.Error
		if errors.As(err, &x) && x.Remedy == "" {
			x.Remedy = "mend the cause and destroy again; the sandbox still holds the work"
		}
		return err
	}
	report.Conflicts = r.Conflicts
	if len(r.Conflicts) > 0 {
		report.Notices = append(report.Notices, Notice{Summary: "Files changed on both sides were left alone",
			Detail: fmt.Sprintf("In %s these changed here and in %s; yours were kept%s:\n  %s", dir, row.ID, keptAt(r), strings.Join(r.Conflicts, "\n  "))})
	}
	return nil
}

func keptAt(r workspace.Report) string {
	if r.KeptDir == "" {
		return ""
	}
	return ", the sandbox's are in " + r.KeptDir
}

// baseOf is the manifest of what was sent to a workspace that comes back.
func baseOf(spec extensions.Spec, s *workspace.Source) json.RawMessage {
	if s == nil || spec.Workspace.Mode != extensions.WorkspaceMirror {
		return nil
	}
	return mustJSON(s.Manifest())
}
