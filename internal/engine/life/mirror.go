package life

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/workspace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// mirrorOf returns the local folder that a mirrored workspace returns to, or "": its source, or a folder
// of the sandbox's own if the source is no folder.
func (m *Manager) mirrorOf(row ledger.Sandbox) string {
	switch w := specOf(row).Workspace; {
	case w.Mode != extensions.WorkspaceMirror || w.Access != extensions.AccessRW:
		return ""
	case w.Repo != "" && workspace.IsFolder(w.Repo):
		return w.Repo
	}
	return m.ownFolder(row.ID)
}

// ownFolder returns the folder for a mirrored workspace that came from no folder.
func (m *Manager) ownFolder(id extensions.ID) string { return filepath.Join(m.keptDir(), string(id)) }

func (m *Manager) keptDir() string { return filepath.Join(m.stateDir, "kept") }

// SyncBack brings a mirrored workspace back now. Files changed on both sides, and files that the sandbox
// could not deliver, are returned as conflicts and left alone on this side.
func (m *Manager) SyncBack(ctx context.Context, rec plan.Receipt) (changed, conflicts []string, err error) {
	_, row, known := m.rowFor(ctx, rec)
	dir := rec.Mirror
	if known {
		dir = m.mirrorOf(row)
	}
	if dir == "" {
		return nil, nil, extensions.Invalid("sandbox %s has no mirrored workspace", "use a profile with workspace mode mirror and access rw",
			rec.ID)
	}
	b, h, err := m.enter(ctx, rec)
	if err != nil {
		return nil, nil, err
	}
	row.Handle = h
	got, err := m.fetch(ctx, b, row)
	if err != nil {
		return nil, nil, err
	}
	defer got.release()
	if err := m.land(ctx, &got, row, dir); err != nil {
		return nil, nil, err
	}
	if known {
		err = m.moveBase(ctx, row, got.report)
	}
	return slices.Concat(got.report.Written, got.report.Deleted), got.told(), err
}

// moveBase records what both sides now agree on, so that the next transfer compares with this one.
func (m *Manager) moveBase(ctx context.Context, row ledger.Sandbox, report workspace.Report) error {
	base, err := workspace.EncodeBase(report.Base)
	if err != nil {
		return err
	}
	l, err := m.book.Changer(ctx)
	if err != nil {
		return err
	}
	key, err := m.book.Key(ledger.IntentSync, string(row.ID))
	if err != nil {
		return err
	}
	_, err = l.Apply(context.WithoutCancel(ctx),
		ledger.Change{ID: row.ID, Key: key, Expect: ledger.Expect{States: usable, Generation: row.Generation},
			Patch: ledger.Patch{WorkspaceBase: base},
			Event: ledger.NewNote("sandbox.synced", map[string]any{"written": len(report.Written), "deleted": len(report.Deleted),
				"left": len(report.Conflicts) + len(report.Refused)})})
	return err
}

// synced is one transfer. Its stream is kept until nothing in it can be lost.
type synced struct {
	stream *os.File
	done   func()                 // releases the folder that holds the stream
	lacks  *extensions.Incomplete // nil if the stream is complete
	report workspace.Report
}

func (s synced) release() {
	_ = s.stream.Close()
	s.done()
}

// left lists what was not brought back, and why.
func (s synced) left() []string {
	var out []string
	for _, c := range slices.Concat(s.report.Conflicts, s.report.Refused) {
		out = append(out, c.Path+": "+c.Reason)
	}
	return out
}

// told returns left plus what the stream lacks.
func (s synced) told() []string {
	out := s.left()
	if s.lacks != nil {
		out = append(out, "in the sandbox, "+s.lacks.Error())
	}
	return out
}

// fetch downloads the workspace as it is.
func (m *Manager) fetch(ctx context.Context, b *place.Backend, row ledger.Sandbox) (synced, error) {
	if err := b.Can(extensions.PowerFiles); err != nil {
		return synced{}, err
	}
	dir, done, err := m.scratch.Open()
	if err != nil {
		return synced{}, err
	}
	stream, err := os.CreateTemp(dir, "mirror-*.tar")
	if err != nil {
		done()
		return synced{}, extensions.Errorf(extensions.KindUnavailable, "the workspace cannot be stored before it is sent: %w", err)
	}
	got := synced{stream: stream, done: done}
	got.lacks, err = b.Download(ctx, row.Handle, ".", tarstream.WithRoom(stream))
	if err != nil && got.lacks == nil {
		got.release()
		return synced{}, err
	}
	return got, nil
}

// land applies what was fetched to dir.
func (m *Manager) land(ctx context.Context, s *synced, row ledger.Sandbox, dir string) error {
	var base *tarstream.Manifest
	if len(row.WorkspaceBase) > 0 {
		m, err := workspace.DecodeBase(row.WorkspaceBase)
		if err != nil {
			return err
		}
		base = &m
	}
	size, err := s.stream.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if dir == m.ownFolder(row.ID) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	opts := workspace.SyncOptions{SpoolDir: m.scratch.Dir}
	if s.lacks != nil {
		opts.Missing, opts.Incomplete = s.lacks.Paths, s.lacks.More
	}
	s.report, err = workspace.SyncBack(ctx, dir, base, io.NewSectionReader(s.stream, 0, size), opts)
	return err
}

// keep moves the fetched copy to where people find it, beside earlier copies of the sandbox.
func (m *Manager) keep(s synced, id extensions.ID) (string, error) {
	dir := m.keptDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	to := filepath.Join(dir, string(id)+".tar")
	for n := 2; ; n++ {
		if _, err := os.Lstat(to); err != nil {
			return to, os.Rename(s.stream.Name(), to)
		}
		to = filepath.Join(dir, fmt.Sprintf("%s-%d.tar", id, n))
	}
}

// syncBeforeEnd brings a mirrored workspace back before its sandbox ends. A failed fetch stops the end, so
// that no work is discarded silently, unless the sandbox has already ended. What was fetched but does not
// fit here is kept and reported without stopping the end, since the deadline would not wait.
func (m *Manager) syncBeforeEnd(ctx context.Context, b *place.Backend, row ledger.Sandbox, dir string, report *DestroyReport) error {
	if dir == "" || row.Handle.IsZero() {
		return nil
	}
	o, err := m.lookAgain(ctx, row)
	if err != nil {
		return err
	}
	if o.Phase != extensions.PhaseReady && o.Phase != extensions.PhasePaused {
		report.Notices = append(report.Notices, notice.Notice{Summary: "The mirrored workspace could not be brought back",
			Detail: fmt.Sprintf("%s had already ended (%s), so its changes since the last sync are lost.", row.ID, o.Phase)})
		return nil
	}
	if o.Phase == extensions.PhasePaused { // not as the ledger knows it, if one does
		if err := m.book.CheckClock(); err != nil {
			return err
		}
		if _, err := b.Resume(ctx, row.Handle, m.wakeUntil(row)); err != nil {
			return err
		}
	}
	got, err := m.fetch(ctx, b, row)
	if err != nil {
		var x *extensions.Error
		if errors.As(err, &x) && x.Remedy == "" {
			x.Remedy = "fix the cause and destroy again; the sandbox still has your work"
		}
		return err
	}
	defer got.release()
	merged := m.land(ctx, &got, row, dir)
	if ctx.Err() != nil {
		return merged
	}
	if own := m.ownFolder(row.ID); dir == own && holdsFiles(own) {
		report.Notices = append(report.Notices, notice.Notice{Summary: "The workspace is in a new folder",
			Detail: fmt.Sprintf("%s did not start from a folder, so its workspace was saved in %s. sandboxer never removes that folder.", row.ID,
				own)})
	}
	report.Conflicts = got.left()
	if merged == nil && got.report.Clean() && got.lacks == nil {
		return nil
	}
	kept, err := m.keep(got, row.ID)
	if err != nil {
		return extensions.Errorf(extensions.KindUnavailable,
			"part of the workspace cannot be brought back, and an archive of it cannot be kept: %w", err).
			WithRemedy("fix the cause, or free space in %s, and destroy again; the sandbox still has your work", dir)
	}
	report.Notices = append(report.Notices, leftNotice(got, merged, row.ID, dir, kept))
	return nil
}

// holdsFiles removes the folder if it is empty, and reports whether it stays.
func holdsFiles(dir string) bool {
	err := os.Remove(dir)
	return err != nil && !errors.Is(err, fs.ErrNotExist)
}

// leftNotice says what was not brought back, where it is, and what will exist nowhere once the sandbox is
// gone.
func leftNotice(s synced, merged error, id extensions.ID, dir, kept string) notice.Notice {
	n := notice.Notice{Summary: "Some files could not be brought back"}
	said := s.left()
	switch {
	case merged != nil:
		n.Summary = "The mirrored workspace could not be brought back"
		said = append([]string{merged.Error()}, said...)
	case len(s.report.Refused) == 0 && s.lacks == nil:
		n.Summary = "Files changed on both sides were not overwritten"
	}
	const most = 20
	if more := len(said) - most; more > 0 {
		said = append(said[:most:most], fmt.Sprintf("and %d more", more))
	}
	if len(said) > 0 {
		n.Detail = fmt.Sprintf("These local files were not overwritten with those of %s:\n  %s\n", dir, strings.Join(said, "\n  "))
	}
	lacks := ""
	if s.lacks != nil {
		lacks = ", without unreadable files, which are lost"
	}
	n.Detail += fmt.Sprintf("The final workspace of %s is in the archive %s%s. To open it: mkdir workspace && tar -xf %s -C workspace", id,
		kept, lacks,
		kept)
	if s.lacks != nil {
		n.Detail += "\nMissing in the archive: " + s.lacks.Error()
	}
	return n
}
