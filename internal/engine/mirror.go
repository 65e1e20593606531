package engine

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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/workspace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// mirrorOf is the local folder a mirrored workspace returns to, or "": its
// source, or, where that is no folder, one of the sandbox's own.
func (e *Engine) mirrorOf(row ledger.Sandbox) string {
	switch w := specOf(row).Workspace; {
	case w.Mode != extensions.WorkspaceMirror || w.Access != extensions.AccessRW:
		return ""
	case w.Repo != "" && workspace.IsFolder(w.Repo):
		return w.Repo
	}
	return e.ownFolder(row.ID)
}

// ownFolder is where a mirrored workspace returns to that came from no folder.
func (e *Engine) ownFolder(id ID) string { return filepath.Join(e.keptDir(), string(id)) }

func (e *Engine) keptDir() string { return filepath.Join(e.stateDir, "kept") }

// SyncBack brings a mirrored workspace back now. Files changed on both sides
// are returned as conflicts and left alone on this side, as is what could not be
// had from the sandbox.
func (e *Engine) SyncBack(ctx context.Context, rec Receipt) (changed, conflicts []string, err error) {
	_, row, known := e.rowFor(ctx, rec)
	dir := rec.Mirror
	if known {
		dir = e.mirrorOf(row)
	}
	if dir == "" {
		return nil, nil, extensions.Invalid("sandbox %s has no mirrored workspace", "use a profile with workspace mode mirror and access rw", rec.ID)
	}
	b, h, err := e.enter(ctx, rec)
	if err != nil {
		return nil, nil, err
	}
	row.Handle = h
	got, err := e.fetch(ctx, b, row)
	if err != nil {
		return nil, nil, err
	}
	defer got.release()
	if err := e.land(ctx, &got, row, dir); err != nil {
		return nil, nil, err
	}
	if known {
		err = e.moveBase(ctx, row, got.report)
	}
	return slices.Concat(got.report.Written, got.report.Deleted), got.told(), err
}

// moveBase records what both sides agree on now, so that the next transfer
// compares with this one and not with the beginning.
func (e *Engine) moveBase(ctx context.Context, row ledger.Sandbox, report workspace.Report) error {
	base, err := workspace.EncodeBase(report.Base)
	if err != nil {
		return err
	}
	l, err := e.book.Changer(ctx)
	if err != nil {
		return err
	}
	key, err := e.book.Key(ledger.IntentSync, string(row.ID))
	if err != nil {
		return err
	}
	_, err = l.Apply(context.WithoutCancel(ctx), ledger.Change{ID: row.ID, Key: key, Expect: ledger.Expect{States: usable, Generation: row.Generation},
		Patch: ledger.Patch{WorkspaceBase: base},
		Event: ledger.NewNote("sandbox.synced", map[string]any{"written": len(report.Written), "deleted": len(report.Deleted), "left": len(report.Conflicts) + len(report.Refused)})})
	return err
}

// synced is one transfer. The stream is kept until it is clear that nothing in
// it is lost.
type synced struct {
	stream *os.File
	done   func()                 // with the folder that the stream is in
	lacks  *extensions.Incomplete // nil where the stream has all
	report workspace.Report
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

// told is left with what the stream lacks.
func (s synced) told() []string {
	out := s.left()
	if s.lacks != nil {
		out = append(out, "in the sandbox, "+s.lacks.Error())
	}
	return out
}

// fetch downloads the workspace as it is.
func (e *Engine) fetch(ctx context.Context, b *place.Backend, row ledger.Sandbox) (synced, error) {
	if err := b.Can(extensions.PowerFiles); err != nil {
		return synced{}, err
	}
	dir, done, err := e.scratch.Open()
	if err != nil {
		return synced{}, err
	}
	stream, err := os.CreateTemp(dir, "mirror-*.tar")
	if err != nil {
		done()
		return synced{}, extensions.Errorf(extensions.KindUnavailable, "the workspace cannot be spooled: %w", err)
	}
	got := synced{stream: stream, done: done}
	got.lacks, err = b.Download(ctx, row.Handle, ".", tarstream.WithRoom(stream))
	if err != nil && got.lacks == nil {
		got.release()
		return synced{}, err
	}
	return got, nil
}

// land brings what was fetched into dir.
func (e *Engine) land(ctx context.Context, s *synced, row ledger.Sandbox, dir string) error {
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
	if dir == e.ownFolder(row.ID) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	opts := workspace.SyncOptions{SpoolDir: e.scratch.Dir}
	if s.lacks != nil {
		opts.Missing, opts.Incomplete = s.lacks.Paths, s.lacks.More
	}
	s.report, err = workspace.SyncBack(ctx, dir, base, io.NewSectionReader(s.stream, 0, size), opts)
	return err
}

// keep moves the sandbox's own copy to where people find it, beside what was kept
// of the sandbox before.
func (e *Engine) keep(s synced, id ID) (string, error) {
	dir := e.keptDir()
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

// syncBeforeEnd brings a mirrored workspace back before its sandbox ends. What
// cannot be had at all stops the end, unless there is nothing to bring back any
// more: work is not thrown away silently. What was had and has no place here is
// kept and told, and stops nothing: the sandbox's deadline would not wait.
func (e *Engine) syncBeforeEnd(ctx context.Context, b *place.Backend, row ledger.Sandbox, dir string, report *DestroyReport) error {
	if dir == "" || row.Handle.IsZero() {
		return nil
	}
	o, err := b.Look(ctx, row.Handle)
	if err != nil {
		return err
	}
	if o.Phase != extensions.PhaseReady && o.Phase != extensions.PhasePaused {
		report.Notices = append(report.Notices, Notice{Summary: "The mirrored workspace could not be brought back",
			Detail: fmt.Sprintf("%s had ended already (%s), so changes made in it since the last sync are lost.", row.ID, o.Phase)})
		return nil
	}
	got, err := e.fetch(ctx, b, row)
	if err != nil {
		var x *extensions.Error
		if errors.As(err, &x) && x.Remedy == "" {
			x.Remedy = "mend the cause and destroy again; the sandbox still holds the work"
		}
		return err
	}
	defer got.release()
	merged := e.land(ctx, &got, row, dir)
	if ctx.Err() != nil {
		return merged
	}
	if own := e.ownFolder(row.ID); dir == own && holdsFiles(own) {
		report.Notices = append(report.Notices, Notice{Summary: "The workspace is in a folder of its own",
			Detail: fmt.Sprintf("%s did not start from a folder to bring its workspace back into: it is in %s, where nothing removes it.", row.ID, own)})
	}
	report.Conflicts = got.left()
	if merged == nil && got.report.Clean() && got.lacks == nil {
		return nil
	}
	kept, err := e.keep(got, row.ID)
	if err != nil {
		return extensions.Errorf(extensions.KindUnavailable, "not all of the workspace can be brought back, and the sandbox's copy cannot be kept: %w", err).
			WithRemedy("make room or mend the cause in %s, and destroy again; the sandbox still holds the work", dir)
	}
	report.Notices = append(report.Notices, leftNotice(got, merged, row.ID, dir, kept))
	return nil
}

// holdsFiles removes the folder if it is empty and reports whether it stays.
func holdsFiles(dir string) bool {
	err := os.Remove(dir)
	return err != nil && !errors.Is(err, fs.ErrNotExist)
}

// leftNotice says what was not brought back, where it is, and what is nowhere any
// more once the sandbox is gone.
func leftNotice(s synced, merged error, id ID, dir, kept string) Notice {
	n := Notice{Summary: "Some files could not be brought back"}
	said := s.left()
	switch {
	case merged != nil:
		n.Summary = "The mirrored workspace could not be brought back"
		said = append([]string{merged.Error()}, said...)
	case len(s.report.Refused) == 0 && s.lacks == nil:
		n.Summary = "Files changed on both sides were left alone"
	}
	const most = 20
	if more := len(said) - most; more > 0 {
		said = append(said[:most:most], fmt.Sprintf("and %d more", more))
	}
	if len(said) > 0 {
		n.Detail = fmt.Sprintf("In %s these were kept as they are here:\n  %s\n", dir, strings.Join(said, "\n  "))
	}
	lacks := ""
	if s.lacks != nil {
		lacks = ", but for what could not be had of it and went with the sandbox"
	}
	n.Detail += fmt.Sprintf("The workspace of %s as it ended is in %s%s; open it with: mkdir workspace && tar -xf %s -C workspace", id, kept, lacks, kept)
	if s.lacks != nil {
		n.Detail += "\nThe archive lacks: " + s.lacks.Error()
	}
	return n
}
