package composessh

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

const snapshotVersion = 1

// snapshots is what a host keeps: one file each, below the root; see sh/parts.sh.
var snapshots = extensions.Snapshots{
	Kinds:    []extensions.SnapshotKind{extensions.SnapshotWorkspace, extensions.SnapshotFilesystem},
	Find:     extensions.Find{Strength: extensions.FindStrong},
	Portable: []extensions.SnapshotKind{extensions.SnapshotWorkspace, extensions.SnapshotFilesystem},
}

// Files of the operations on snapshots.
var (
	snapshotFiles = []string{"lease", "look", "folder", "remove", "memory", "toolbox", "tries", "rules", "deny", "firewall", "proxy",
		"images", "take", "hold", "parts", "kept", "snapshot"}
	keepFiles = []string{"lease", "folder", "remove", "memory", "toolbox", "tries", "rules", "deny", "firewall", "proxy", "images", "kept",
		"keep"}
	readFiles = []string{"frame", "inside", "kept", "read"}
)

// snapshotData is what else it takes to find a snapshot, and to trust it.
type snapshotData struct {
	Root   string `json:"root,omitempty"` // "" = ~/.sandboxer of the login
	Digest string `json:"digest"`
}

// keptSnapshot is a snapshot's record on the host.
type keptSnapshot struct {
	ID      string                  `json:"id"`
	Sandbox extensions.ID           `json:"sandbox"`
	Kind    extensions.SnapshotKind `json:"kind"`
	Name    string                  `json:"name"`
	Created string                  `json:"created"`
	Size    string                  `json:"size"`
	Digest  string                  `json:"digest"`
}

// describe makes of a record what the contract says. A host's text is not trusted.
func (k keptSnapshot) describe(root string) (extensions.Snapshot, error) {
	size, err := strconv.ParseInt(k.Size, 10, 64)
	created, terr := time.Parse(time.RFC3339Nano, k.Created)
	if _, ok := extensions.HexOfDigest(k.Digest); !ok || err != nil || terr != nil || !extensions.ValidSnapshotID(k.ID) ||
		snapshotSpec(k.Kind).CheckKind(snapshots) != nil {
		return extensions.Snapshot{}, extensions.Errorf(extensions.KindInternal, "the host's record of the snapshot %s cannot be read",
			extensions.Clean(k.ID, 60)).WithRemedy("check its manifest below the folder snapshots on the host")
	}
	data, _ := json.Marshal(snapshotData{Root: root, Digest: k.Digest}) // strings cannot fail
	return extensions.Snapshot{
		Handle:    extensions.SnapshotHandle{Extension: Handler, Version: snapshotVersion, ID: k.ID, Ref: k.ID, Data: data},
		SandboxID: k.Sandbox, Kind: k.Kind, SizeBytes: size, Digest: k.Digest, CreatedAt: created,
	}, nil
}

func snapshotSpec(kind extensions.SnapshotKind) extensions.SnapshotSpec {
	return extensions.SnapshotSpec{Kind: kind}
}

// Snapshot implements extensions.Snapshotter with one exec. The host commits it by one rename, also if the
// caller has gone away meanwhile.
func (b *Backend) Snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (extensions.Snapshot, error) {
	s, err := b.snapshot(ctx, h, spec)
	return s, failed("snapshot", h.ID, err)
}

func (b *Backend) snapshot(ctx context.Context, h extensions.Handle, spec extensions.SnapshotSpec) (extensions.Snapshot, error) {
	if err := spec.CheckKind(snapshots); err != nil {
		return extensions.Snapshot{}, err
	}
	at, err := b.resolve(h)
	if err != nil {
		return extensions.Snapshot{}, err
	}
	if err := checkSnapshotID(spec.ID); err != nil {
		return extensions.Snapshot{}, err
	}
	kind, created := spec.Kind, spec.CreatedAt
	if kind == "" {
		kind = snapshots.Kinds[0]
	}
	if created.IsZero() {
		created = time.Now()
	}
	a, err := b.call(ctx, operation{id: at.id, files: snapshotFiles, vars: map[string]string{"root": at.root, "snapshot": spec.ID,
		"kind": string(kind), "live": flag(spec.Live), "name": extensions.Clean(spec.Name, maxMessage),
		"created": created.UTC().Format(time.RFC3339Nano), "lock_wait": lockWaitLong}})
	if err != nil {
		return extensions.Snapshot{}, err
	}
	return a.Snapshot.describe(at.root)
}

// FindSnapshot implements extensions.Snapshotter.
func (b *Backend) FindSnapshot(ctx context.Context, id string) (extensions.Snapshot, error) {
	s, err := b.keep(ctx, snapshotTarget{id: id, root: b.settings.root}, "find")
	return s, failed("find snapshot", "", err)
}

// StatSnapshot implements extensions.Snapshotter.
func (b *Backend) StatSnapshot(ctx context.Context, h extensions.SnapshotHandle) (extensions.Snapshot, error) {
	s, err := b.keptBy(ctx, h, "find")
	return s, failed("stat snapshot", "", err)
}

// DeleteSnapshot implements extensions.Snapshotter. It waits for a script that still makes or restores it.
func (b *Backend) DeleteSnapshot(ctx context.Context, h extensions.SnapshotHandle) error {
	_, err := b.keptBy(ctx, h, "remove")
	return failed("delete snapshot", "", err)
}

func (b *Backend) keptBy(ctx context.Context, h extensions.SnapshotHandle, way string) (extensions.Snapshot, error) {
	at, err := b.resolveSnapshot(h)
	if err != nil {
		return extensions.Snapshot{}, err
	}
	return b.keep(ctx, at, way)
}

// keep runs sh/keep.sh.
func (b *Backend) keep(ctx context.Context, at snapshotTarget, way string) (extensions.Snapshot, error) {
	if err := checkSnapshotID(at.id); err != nil {
		return extensions.Snapshot{}, err
	}
	a, err := b.call(ctx, operation{files: keepFiles, vars: map[string]string{"root": at.root, "snapshot": at.id, "way": way}})
	if err != nil || way != "find" {
		return extensions.Snapshot{}, err
	}
	return a.Snapshot.describe(at.root)
}

// ReadSnapshot implements extensions.SnapshotReader: the file as it is kept.
func (b *Backend) ReadSnapshot(ctx context.Context, h extensions.SnapshotHandle, w io.Writer) error {
	return failed("read snapshot", "", b.readSnapshot(ctx, h, w))
}

func (b *Backend) readSnapshot(ctx context.Context, h extensions.SnapshotHandle, w io.Writer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at, err := b.resolveSnapshot(h)
	if err != nil {
		return err
	}
	vars := map[string]string{"root": at.root, "account": b.settings.account, "id": "", "snapshot": at.id, "lock_wait": lockWaitShort,
		"service": "", "sbx_channel": execwire.NewNonce()}
	heard := &hearing{first: func(said) {}}
	end, err := heard.transfer(ctx, b, remote.Command{Script: script(readFiles...), Vars: vars, Stdout: w})
	if err == nil && end.Exit != 0 {
		err = extensions.Errorf(extensions.KindUnavailable, "the snapshot %s could not be read to its end on the host", at.id).
			WithRemedy("check the disk of the host, and try again")
	}
	return err
}

// snapshotTarget is the snapshot that a handle names.
type snapshotTarget struct {
	id, root, digest string
}

// resolveSnapshot checks that h is a handle of this extension.
func (b *Backend) resolveSnapshot(h extensions.SnapshotHandle) (snapshotTarget, error) {
	var d snapshotData
	if h.Extension != Handler || h.Version < 1 || h.Version > snapshotVersion || h.Ref != h.ID || json.Unmarshal(h.Data, &d) != nil {
		return snapshotTarget{}, extensions.Errorf(extensions.KindInvalid, "this version does not read this snapshot handle of %s", Handler)
	}
	if err := checkSnapshotID(h.ID); err != nil {
		return snapshotTarget{}, err
	}
	return snapshotTarget{id: h.ID, root: d.Root, digest: d.Digest}, checkRoot(d.Root)
}

func checkSnapshotID(id string) error {
	if !extensions.ValidSnapshotID(id) {
		return extensions.Errorf(extensions.KindInvalid, "%q is not a snapshot ID", extensions.Clean(id, 60))
	}
	return nil
}
