package book

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Noted is the end of a sandbox that its ledger could not record. It waits in a file of the state folder for the
// next run that changes that ledger.
type Noted struct {
	Version    int               `json:"version"`
	Ledger     string            `json:"ledger,omitempty"`    // address, without user and password; "" = unknown here
	LedgerID   string            `json:"ledger_id,omitempty"` // "" = the one that knows the sandbox
	At         time.Time         `json:"at"`                  // when it was noted
	ID         extensions.ID     `json:"id"`
	Generation int64             `json:"generation"`
	EndedAt    time.Time         `json:"ended_at"`
	Source     string            `json:"source"`
	Estimated  bool              `json:"estimated,omitempty"`
	Idle       bool              `json:"idle,omitempty"`
	Usage      *extensions.Usage `json:"usage,omitempty"`
	// Lease says that not the sandbox ended at EndedAt but this lease on it.
	Lease string `json:"lease,omitempty"`
}

// name returns the name of the note's file.
func (u Noted) name() string {
	if u.Lease != "" {
		return string(u.ID) + "." + u.Lease + ".json"
	}
	return string(u.ID) + ".json"
}

// pointNoting is where tests kill the process: the sandbox has ended, and its note has no name yet.
const pointNoting = "engine.note.written"

const (
	notedVersion = 1
	notedDir     = "unsettled"
)

// NoteEnd writes the note: one file per sandbox, for its latest life. An earlier noted end stays.
func (b *Book) NoteEnd(ctx context.Context, u Noted) error {
	u.Version, u.At = notedVersion, b.Now()
	dir := filepath.Join(b.StateDir, notedDir)
	file := filepath.Join(dir, u.name())
	if before, err := readNoted(file); err == nil &&
		(before.Generation > u.Generation || before.Generation == u.Generation && !before.EndedAt.After(u.EndedAt)) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	part, done, err := b.Scratch.Open()
	if err != nil {
		return err
	}
	defer done()
	f, err := os.CreateTemp(part, "unsettled-*")
	if err != nil {
		return err
	}
	err = json.NewEncoder(f).Encode(u)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = failpoint.Hit(ctx, pointNoting)
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return err
	}
	if d, err := os.Open(dir); err == nil { // so that the name survives a power cut too, where the system can sync it
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// Folder returns the folder of noted ends.
func (b *Book) Folder() string { return filepath.Join(b.StateDir, notedDir) }

// notes lists the files of noted ends, of any ledger.
func (b *Book) notes() []string {
	files, _ := filepath.Glob(filepath.Join(b.StateDir, notedDir, "sbx-*.json")) // the pattern is well formed
	return files
}

// notedFor reads, by file, the notes that l may have to settle, and the errors of unreadable ones.
func (b *Book) notedFor(l *ledger.Ledger) (noted map[string]Noted, unread map[string]error) {
	noted, unread = map[string]Noted{}, map[string]error{}
	for _, name := range b.notes() {
		u, err := readNoted(name)
		switch {
		case err != nil && !errors.Is(err, os.ErrNotExist): // else another run has settled it
			unread[name] = err
		case err == nil && (u.LedgerID == "" || u.LedgerID == l.ID() || u.Ledger == b.URL()):
			noted[name] = u
		}
	}
	return noted, unread
}

// EndsNoted returns the sandboxes whose end l has not recorded yet.
func (b *Book) EndsNoted(ctx context.Context, l *ledger.Ledger) (ids []extensions.ID) {
	noted, _ := b.notedFor(l)
	for _, u := range noted {
		if row, err := l.Get(ctx, u.ID); u.Lease == "" && err == nil && row.State != lifecycle.Destroyed && u.about(row) {
			ids = append(ids, u.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// SettleNoted settles the ends that earlier runs noted for this ledger, in the order of their times.
func (b *Book) SettleNoted(ctx context.Context, l *ledger.Ledger, notify notice.Notify) {
	left := func(name string, err error) {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			notify.Tell("Not settled yet", "the end noted in %s could not be settled: %s", name, err.Error())
		}
	}
	noted, unread := b.notedFor(l)
	for name, err := range unread {
		left(name, err)
	}
	order := slices.SortedFunc(maps.Keys(noted), func(a, b string) int { return noted[a].At.Compare(noted[b].At) })
	for _, name := range order {
		err := b.settleOne(ctx, l, noted[name], notify)
		switch {
		case extensions.IsKind(err, extensions.KindNotFound):
			continue // another ledger's
		case err == nil:
			err = os.Remove(name)
		}
		left(name, err)
	}
}

func readNoted(name string) (Noted, error) {
	var u Noted
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &u)
	}
	if err == nil && (u.Version != notedVersion || u.EndedAt.IsZero() || u.name() != filepath.Base(name)) {
		err = extensions.Invalid("sandboxer did not write it", "inspect the file and remove it")
	}
	return u, err
}

// settleOne closes the row of a noted end. It leaves a closed row, or one in another generation, as it is. It
// returns NotFound if this ledger has no row.
func (b *Book) settleOne(ctx context.Context, l *ledger.Ledger, u Noted, notify notice.Notify) error {
	row, err := l.Get(ctx, u.ID)
	if err != nil || row.State == lifecycle.Destroyed || !u.about(row) {
		return err
	}
	if u.Lease != "" {
		return b.releaseNoted(ctx, l, u)
	}
	gone := Ending{At: u.EndedAt, Source: u.Source, Estimated: u.Estimated, Idle: u.Idle, Usage: u.Usage}
	if seen := LastSeen(row); gone.Source == "seen-alive" && seen.After(gone.At) {
		gone.At = seen // by this ledger: the note may be from a run with only a receipt
	}
	change := ledger.Change{Event: ledger.NewNote("sandbox.destroying",
		map[string]any{"why": "ended earlier, noted at " + u.EndedAt.UTC().Format(time.RFC3339)})}
	if row.State != lifecycle.Destroying {
		change.To = lifecycle.Destroying
	}
	if gone, err = gone.Believed(ctx, l, row, nil); err != nil {
		return err
	}
	op, err := b.Begin(ctx, l, row, ledger.IntentDestroy, change, notify)
	if err != nil {
		return Settled(err)
	}
	defer op.Close()
	return op.Discard(ctx, ledger.Confirmed, gone.Reason("destroyed", op.Row), "", gone)
}

// releaseNoted ends a lease.
func (b *Book) releaseNoted(ctx context.Context, l *ledger.Ledger, u Noted) error {
	key, err := b.Key(ledger.IntentExtend, string(u.ID))
	if err == nil {
		_, err = l.Apply(ctx, ledger.Change{ID: u.ID, Key: key, Release: []string{u.Lease},
			Event: ledger.NewNote("sandbox.released", map[string]any{"lease": u.Lease, "noted": u.At})})
	}
	return err
}

// about reports whether the note is about the row's current life. Without its receipt, the note counts for the
// life that was ready by then.
func (u Noted) about(row ledger.Sandbox) bool {
	if u.Generation == 0 {
		return !row.ReadyAt.After(u.EndedAt)
	}
	return row.Generation == u.Generation
}
