package book

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Noted is the end of a sandbox that its ledger could not take down when it
// happened. It waits in a file of the state folder for the next run that changes
// something in that ledger.
type Noted struct {
	Version    int               `json:"version"`
	Ledger     string            `json:"ledger,omitempty"`    // address, without user and password; "" = not known here
	LedgerID   string            `json:"ledger_id,omitempty"` // "" = the one that knows the sandbox
	At         time.Time         `json:"at"`                  // when it was noted
	ID         extensions.ID     `json:"id"`
	Generation int64             `json:"generation"`
	EndedAt    time.Time         `json:"ended_at"`
	Source     string            `json:"source"`
	Estimated  bool              `json:"estimated,omitempty"`
	Usage      *extensions.Usage `json:"usage,omitempty"`
}

// pointNoting is where tests end the process: ended there, noted in a file that
// has no name yet.
const pointNoting = "engine.note.written"

const (
	notedVersion = 1
	notedDir     = "unsettled"
)

// NoteEnd writes the note; one file for each sandbox, of which the latest
// life counts. An end that is noted already is one it cannot have outlived.
func (b *Book) NoteEnd(ctx context.Context, u Noted) error {
	u.Version, u.At = notedVersion, b.Now()
	dir := filepath.Join(b.StateDir, notedDir)
	file := filepath.Join(dir, string(u.ID)+".json")
	if before, err := readNoted(file); err == nil && (before.Generation > u.Generation || before.Generation == u.Generation && !before.EndedAt.After(u.EndedAt)) {
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
	if d, err := os.Open(dir); err == nil { // the name too survives a power cut, where the system can do that
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// Folder is where ends are noted.
func (b *Book) Folder() string { return filepath.Join(b.StateDir, notedDir) }

// notes are the files with what is to be settled, of any ledger.
func (b *Book) notes() []string {
	files, _ := filepath.Glob(filepath.Join(b.StateDir, notedDir, "sbx-*.json")) // the pattern is well formed
	return files
}

// notedFor reads the notes that l may have to take down, by file, and those that
// cannot be read.
func (b *Book) notedFor(l ledger.Ledger) (noted map[string]Noted, unread map[string]error) {
	noted, unread = map[string]Noted{}, map[string]error{}
	for _, name := range b.notes() {
		u, err := readNoted(name)
		switch {
		case err != nil && !errors.Is(err, os.ErrNotExist): // else somebody has settled it
			unread[name] = err
		case err == nil && (u.LedgerID == "" || u.LedgerID == l.ID() || u.Ledger == b.URL()):
			noted[name] = u
		}
	}
	return noted, unread
}

// EndsNoted are the sandboxes whose end l has yet to take down.
func (b *Book) EndsNoted(ctx context.Context, l ledger.Ledger) (ids []extensions.ID) {
	noted, _ := b.notedFor(l)
	for _, u := range noted {
		if row, err := l.Get(ctx, u.ID); err == nil && row.State != lifecycle.Destroyed && u.about(row) {
			ids = append(ids, u.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// SettleNoted takes down what earlier runs noted for this ledger, in the order
// it happened.
func (b *Book) SettleNoted(ctx context.Context, l ledger.Ledger, notify notice.Notify) {
	left := func(name string, err error) {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			notify.Tell("Left for later", "what is noted in %s could not be settled: %s", name, err.Error())
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
	if err == nil && (u.Version != notedVersion || u.EndedAt.IsZero() || string(u.ID) != strings.TrimSuffix(filepath.Base(name), ".json")) {
		err = extensions.Invalid("it is not a note of this program", "look at it and remove it")
	}
	return u, err
}

// settleOne closes the row of what was ended. A row that is closed, or went on
// in another generation, needs nothing. NotFound: this ledger has none.
func (b *Book) settleOne(ctx context.Context, l ledger.Ledger, u Noted, notify notice.Notify) error {
	row, err := l.Get(ctx, u.ID)
	if err != nil || row.State == lifecycle.Destroyed || !u.about(row) {
		return err
	}
	gone := Ending{At: u.EndedAt, Source: u.Source, Estimated: u.Estimated, Usage: u.Usage}
	if seen := LastSeen(row); gone.Source == "seen-alive" && seen.After(gone.At) {
		gone.At = seen // by this ledger: the note may be another one's, which knew no more than a receipt
	}
	change := ledger.Change{Event: ledger.NewNote("sandbox.destroying", map[string]any{"why": "ended before, noted at " + u.EndedAt.UTC().Format(time.RFC3339)})}
	if row.State != lifecycle.Destroying {
		change.To = lifecycle.Destroying
	}
	op, err := b.Begin(ctx, l, row, ledger.IntentDestroy, change, notify)
	if err != nil {
		return Settled(err)
	}
	defer op.Close()
	return op.Discard(ctx, ledger.Confirmed, gone.Reason("destroyed", op.Row), "", gone)
}

// about reports that the note is about the life that row has. A receipt that was
// lost does not tell which one it was: it is one that was ready by then.
func (u Noted) about(row ledger.Sandbox) bool {
	if u.Generation == 0 {
		return !row.ReadyAt.After(u.EndedAt)
	}
	return row.Generation == u.Generation
}
