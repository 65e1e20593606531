package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/workspace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
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

// SyncBack brings a mirrored workspace back now. Files changed on both sides
// are returned as conflicts and left alone on this side.
func (e *Engine) SyncBack(ctx context.Context, rec Receipt) (changed, conflicts []string, err error) {
	_, row, known := e.rowFor(ctx, rec)
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
	got, err := e.syncBack(ctx, b, row, dir)
	if err != nil {
		return nil, nil, err
	}
	defer got.release()
	if known {
		err = e.moveBase(ctx, row, got.report)
	}
	return slices.Concat(got.report.Written, got.report.Deleted), got.left(), err
}

// moveBase records what both sides agree on now, so that the next transfer
// compares with this one and not with the beginning.
func (e *Engine) moveBase(ctx context.Context, row ledger.Sandbox, report workspace.Report) error {
	base, err := workspace.EncodeBase(report.Base)
	if err != nil {
		return err
	}
	l, err := e.writer(ctx)
	if err != nil {
		return err
	}
	key, err := e.operationKey(ledger.IntentSync, row.ID)
	if err != nil {
		return err
	}
	_, err = l.Apply(context.WithoutCancel(ctx), ledger.Change{ID: row.ID, Key: key, Expect: ledger.Expect{States: usable, Generation: row.Generation},
		Patch: ledger.Patch{WorkspaceBase: base},
		Event: note("sandbox.synced", map[string]any{"written": len(report.Written), "deleted": len(report.Deleted), "left": len(report.Conflicts) + len(report.Refused)})})
	return err
}

// synced is one finished transfer. The stream is kept until it is clear that
// nothing in it is lost.
type synced struct {
	report workspace.Report
	stream *os.File
	done   func() // with the folder that the stream is in
}

func (s synced) release() {
	_ = s.stream.Close()
	s.done()
}

// left lists what was not brought back and why.
func (s synced) left() []string {
	var out []string
	for _, c := range slices.Concat(s.report.Conflicts, s.report.Refused) {
		out = append(out, c.Path+": "+c.Reason)
	}
	return out
}

// syncBack downloads the workspace and merges it into dir.
func (e *Engine) syncBack(ctx context.Context, b *opened, row ledger.Sandbox, into string) (synced, error) {
	x, err := power[extensions.FileTransfer](e, b, extensions.PowerFiles)
	if err != nil {
		return synced{}, err
	}
	dir, done, err := e.openScratch()
	if err != nil {
		return synced{}, err
	}
	stream, err := os.CreateTemp(dir, "mirror-*.tar")
	if err != nil {
		done()
		return synced{}, extensions.Errorf(extensions.KindUnavailable, "the workspace cannot be spooled: %w", err)
	}
	got := synced{stream: stream, done: done}
	c := call{op: "download", binding: b.binding.ID, id: row.ID, timeout: timeoutProvision, once: true}
	err = e.invoke(ctx, c, func(ctx context.Context) error { return x.Download(ctx, row.Handle, ".", stream) })
	if err == nil {
		_, err = stream.Seek(0, io.SeekStart)
	}
	var base *tarstream.Manifest
	if err == nil && len(row.WorkspaceBase) > 0 {
		var m tarstream.Manifest
		m, err = workspace.DecodeBase(row.WorkspaceBase)
		base = &m
	}
	if err == nil {
		got.report, err = workspace.SyncBack(ctx, into, base, stream, workspace.SyncOptions{SpoolDir: e.spoolDir()})
	}
	if err != nil {
		got.release()
		return synced{}, err
	}
	return got, nil
}

// keep moves the sandbox's own copy to where people find it.
func (e *Engine) keep(s synced, id ID) (string, error) {
	dir := filepath.Join(e.stateDir, "kept")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	to := filepath.Join(dir, string(id)+".tar")
	return to, os.Rename(s.stream.Name(), to)
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
	got, err := e.syncBack(ctx, b, row, dir)
	if err != nil {
		var x *extensions.Error
		if errors.As(err, &x) && x.Remedy == "" {
			x.Remedy = "mend the cause and destroy again; the sandbox still holds the work"
		}
		return err
	}
	defer got.release()
	if got.report.Clean() {
		return nil
	}
	kept, err := e.keep(got, row.ID)
	if err != nil {
		return extensions.Errorf(extensions.KindUnavailable, "files changed on both sides, and the sandbox's copy cannot be kept: %w", err).
			WithRemedy("make room or mend the conflicts in %s, and destroy again; the sandbox still holds the work", dir)
	}
	report.Conflicts = got.left()
	report.Notices = append(report.Notices, Notice{Summary: "Files changed on both sides were left alone",
		Detail: fmt.Sprintf("In %s these were kept as they are here; the workspace of %s as it ended is in %s:\n  %s", dir, row.ID, kept, strings.Join(got.left(), "\n  "))})
	return nil
}
