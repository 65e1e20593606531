package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

const (
	snapshotsName   = "snapshots"
	archiveName     = "workspace.tar"
	snapshotVersion = 1
)

// snapshotRecord is stored beside the archive.
type snapshotRecord struct {
	Version   int           `json:"version"`
	ID        string        `json:"id"`
	Name      string        `json:"name,omitempty"`
	Account   string        `json:"account"`
	Sandbox   extensions.ID `json:"sandbox"`
	Size      int64         `json:"size"`
	Digest    string        `json:"digest"` // "sha256:" and the archive's digest in hex
	CreatedAt time.Time     `json:"created_at"`
}

func (s settings) snapshotDir(id string) string { return filepath.Join(s.root, snapshotsName, id) }

// Snapshot implements extensions.Snapshotter: the workspace as a tar file with its digest. Everything inside
// is stopped while it is read.
func (b *Backend) Snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (extensions.Snapshot, error) {
	s, err := b.snapshot(ctx, h, spec)
	return s, failed("snapshot", h.ID, err)
}

func (b *Backend) snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (extensions.Snapshot, error) {
	if err := spec.CheckKind(extension{}.Describe().Snapshots); err != nil {
		return extensions.Snapshot{}, err
	}
	bx, err := b.settings.resolve(h)
	if err != nil {
		return extensions.Snapshot{}, err
	}
	b.settings.sweepHalves()
	if found, err := b.settings.readSnapshot(spec.ID); err == nil || !extensions.IsKind(err, extensions.KindNotFound) {
		if err == nil && found.Sandbox != h.ID {
			return extensions.Snapshot{}, extensions.Errorf(extensions.KindConflict, "%s is a snapshot of %s", spec.ID, found.Sandbox)
		}
		return b.settings.describeSnapshot(found), err
	}
	lock, err := bx.lock(ctx, lockWait)
	if errors.Is(err, fs.ErrNotExist) {
		return extensions.Snapshot{}, bx.missing()
	}
	if err != nil {
		return extensions.Snapshot{}, err
	}
	defer func() { _ = lock.Close() }()
	rec := snapshotRecord{Version: snapshotVersion, ID: spec.ID, Name: spec.Name, Account: b.settings.account, Sandbox: h.ID,
		CreatedAt: spec.CreatedAt.UTC()}
	if rec.CreatedAt.IsZero() {
		rec.CreatedAt = time.Now().UTC()
	}
	if err := b.keep(ctx, bx, &rec); err != nil {
		return extensions.Snapshot{}, err
	}
	return b.settings.describeSnapshot(rec), nil
}

// keep writes archive and record beside each other and names them last: a snapshot exists completely or not
// at all. It takes over by name, or sweeps, what a killed attempt left.
func (b *Backend) keep(ctx context.Context, bx box, rec *snapshotRecord) (err error) {
	dir := b.settings.snapshotDir(rec.ID)
	tmp := filepath.Join(filepath.Dir(dir), ".new-"+rec.ID)
	half := box{id: bx.id, dir: tmp}
	lock, err := half.make(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := half.empty(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(tmp)
		}
	}()
	f, err := os.OpenFile(filepath.Join(tmp, archiveName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	counted := &counter{w: io.MultiWriter(tarstream.WithRoom(f), sum)}
	_, err = bx.simple(ctx, wire.Request{Op: wire.OpSnapshot}, counted)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	rec.Size, rec.Digest = counted.n, "sha256:"+hex.EncodeToString(sum.Sum(nil))
	if err = writeFile(filepath.Join(tmp, recordName), rec, true); err != nil {
		return err
	}
	failpoint("snapshot written", tmp)
	return os.Rename(tmp, dir)
}

// sweepHalves removes what killed snapshots and deletions left. A half still being worked on is locked.
func (s settings) sweepHalves() {
	dir := s.snapshotDir("")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".new-") && !strings.HasPrefix(e.Name(), ".gone-") {
			continue
		}
		half := box{dir: filepath.Join(dir, e.Name())}
		if lock, err := half.tryLock(); err == nil {
			_ = os.RemoveAll(half.dir)
			_ = lock.Close()
			removeIfEmpty(dir)
		}
	}
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (s settings) readSnapshot(id string) (snapshotRecord, error) {
	if !extensions.ValidSnapshotID(id) {
		return snapshotRecord{}, extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot ID", extensions.Clean(id, 60))
	}
	raw, err := os.ReadFile(filepath.Join(s.snapshotDir(id), recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return snapshotRecord{}, extensions.Errorf(extensions.KindNotFound, "the snapshot %s is not on this machine", id)
	}
	if err != nil {
		return snapshotRecord{}, err
	}
	var r snapshotRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, extensions.Errorf(extensions.KindInternal, "the record of the snapshot %s cannot be read: %w", id, err)
	}
	if r.ID != id {
		return r, extensions.Errorf(extensions.KindConflict, "the folder of the snapshot %s contains another one", id)
	}
	return r, nil
}

func (s settings) describeSnapshot(r snapshotRecord) extensions.Snapshot {
	if r.ID == "" {
		return extensions.Snapshot{}
	}
	data, _ := json.Marshal(handleData{Machine: machineID(), Root: s.root})
	return extensions.Snapshot{
		Handle:    extensions.SnapshotHandle{Extension: Handler, Version: handleVersion, ID: r.ID, Ref: r.ID, Data: data},
		SandboxID: r.Sandbox, Kind: extensions.SnapshotWorkspace, SizeBytes: r.Size, Digest: r.Digest, CreatedAt: r.CreatedAt,
	}
}

// FindSnapshot implements extensions.Snapshotter.
func (b *Backend) FindSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return extensions.Snapshot{}, failed("find snapshot", "", err)
	}
	r, err := b.settings.readSnapshot(id)
	return b.settings.describeSnapshot(r), failed("find snapshot", "", err)
}

// StatSnapshot implements extensions.Snapshotter.
func (b *Backend) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
	if err := b.settings.resolveSnapshot(h); err != nil {
		return extensions.Snapshot{}, failed("stat snapshot", "", err)
	}
	return b.FindSnapshot(ctx, h.ID)
}

// DeleteSnapshot implements extensions.Snapshotter.
func (b *Backend) DeleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	return failed("delete snapshot", "", b.deleteSnapshot(ctx, h))
}

func (b *Backend) deleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.settings.resolveSnapshot(h); err != nil {
		return err
	}
	dir := b.settings.snapshotDir(h.ID)
	// The record makes it a snapshot: it goes first, in one step.
	gone := filepath.Join(filepath.Dir(dir), ".gone-"+h.ID)
	if err := os.RemoveAll(filepath.Join(filepath.Dir(dir), ".new-"+h.ID)); err != nil {
		return err
	}
	r, err := b.settings.readSnapshot(h.ID)
	switch {
	case extensions.IsKind(err, extensions.KindNotFound):
		defer removeIfEmpty(filepath.Dir(dir))
		return errors.Join(os.RemoveAll(gone), os.RemoveAll(dir))
	case err != nil:
		return err
	}
	if err := b.settings.mine(r); err != nil {
		return err
	}
	if err := os.RemoveAll(gone); err != nil {
		return err
	}
	if err := os.Rename(dir, gone); err != nil {
		return err
	}
	defer removeIfEmpty(filepath.Dir(dir))
	return os.RemoveAll(gone)
}

// removeIfEmpty removes a folder if it is empty; rmdir refuses one that has just received something.
func removeIfEmpty(dir string) { _ = os.Remove(dir) }

func (s settings) resolveSnapshot(h extensions.SnapshotHandle) error {
	var d handleData
	if h.Extension != Handler || h.Version > handleVersion || h.Ref != h.ID || !extensions.ValidSnapshotID(h.ID) ||
		json.Unmarshal(h.Data, &d) != nil {
		return extensions.Errorf(extensions.KindInvalid, "this version does not read this snapshot handle of %s", Handler)
	}
	if d.Machine != machineID() || d.Root != s.root {
		return extensions.Errorf(extensions.KindUnreachable, "the snapshot %s is on another machine or in the folder %s: %w", h.ID, d.Root,
			extensions.ErrElsewhere).
			WithRemedy("use the machine, user and state folder that created it")
	}
	return nil
}

// openSnapshot opens the archive for a restore and returns its digest, which the archive's reader verifies.
func (s settings) openSnapshot(ctx context.Context, ref extensions.SnapshotRef) (io.ReadCloser, string, error) {
	if ref.Source != nil { // accept checked its digest
		digest, _ := extensions.HexOfDigest(ref.Source.Digest())
		r, err := ref.Source.Open(ctx)
		return r, digest, err
	}
	if ref.Handle.ID != "" {
		if err := s.resolveSnapshot(ref.Handle); err != nil {
			return nil, "", err
		}
	}
	r, err := s.readSnapshot(ref.ID)
	if err == nil {
		err = s.mine(r)
	}
	if err != nil {
		return nil, "", err
	}
	digest, ok := extensions.HexOfDigest(r.Digest)
	if !ok {
		return nil, "", extensions.Errorf(extensions.KindInternal, "the digest of the snapshot %s is malformed", ref.ID)
	}
	f, err := os.Open(filepath.Join(s.snapshotDir(ref.ID), archiveName))
	if err != nil {
		return nil, "", fmt.Errorf("opening the snapshot %s: %w", ref.ID, err)
	}
	return f, digest, nil
}

// mine refuses another account's snapshot.
func (s settings) mine(r snapshotRecord) error {
	if r.Account == s.account {
		return nil
	}
	return extensions.Errorf(extensions.KindConflict, "the snapshot %s belongs to the account %q", r.ID, r.Account)
}

// ReadSnapshot implements extensions.SnapshotReader: the archive as it is kept.
func (b *Backend) ReadSnapshot(ctx context.Context, h extensions.SnapshotHandle, w io.Writer) error {
	return failed("read snapshot", "", b.readTo(ctx, h, w))
}

func (b *Backend) readTo(ctx context.Context, h extensions.SnapshotHandle, w io.Writer) error {
	r, _, err := b.settings.openSnapshot(ctx, extensions.SnapshotRef{ID: h.ID, Handle: h})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	_, err = io.Copy(w, r)
	return err
}
