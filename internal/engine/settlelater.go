package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// unsettled is the end of a sandbox that its ledger could not take down when it
// happened. It waits in a file of the state folder for the next run that changes
// something in that ledger.
type unsettled struct {
	Version    int               `json:"version"`
	Ledger     string            `json:"ledger,omitempty"`    // address, without user and password; "" = not known here
	LedgerID   string            `json:"ledger_id,omitempty"` // "" = the one that knows the sandbox
	At         time.Time         `json:"at"`                  // when it was noted
	ID         ID                `json:"id"`
	Generation int64             `json:"generation"`
	EndedAt    time.Time         `json:"ended_at"`
	Source     string            `json:"source"`
	Estimated  bool              `json:"estimated,omitempty"`
	Usage      *extensions.Usage `json:"usage,omitempty"`
}

const (
	unsettledVersion = 1
	unsettledDir     = "unsettled"
)

// settleLater notes an end for a later run and tells about it. id is that of
// the ledger to settle it in, and why the reason: nil = the ledger here does not
// know the sandbox. It never fails the destroy: what is not noted is settled
// too, at an estimated end, when a run with that ledger finds the sandbox gone.
func (e *Engine) settleLater(row ledger.Sandbox, id string, gone ending, why error, report *DestroyReport) {
	report.unsettled = why
	if why == nil && id == "" && report.AlreadyGone {
		return // nothing says that any ledger waits for it
	}
	u := unsettled{Ledger: e.LedgerURL(), LedgerID: id, ID: row.ID, Generation: row.Generation,
		EndedAt: gone.at, Source: gone.source, Estimated: gone.estimated, Usage: gone.usage}
	told := fmt.Sprintf("Sandbox %s was ended. The ledger could not be written: %s.", row.ID, why)
	next := "The next run that can write the ledger settles it."
	if why == nil {
		u.Ledger = ""
		made := "it was made with another one"
		if id != "" {
			made = "it was made with the ledger " + id
		}
		told = fmt.Sprintf("Sandbox %s was ended. The ledger %s does not know it: %s, where what it cost is still open.", row.ID, e.LedgerURL(), made)
		next = "Its end is noted in " + filepath.Join(e.stateDir, unsettledDir) + ": the next run that changes something with that ledger and this state folder settles it, for instance `sandboxer sweep`."
	}
	if err := e.noteUnsettled(u); err != nil {
		next = "The next run with its ledger that finds it gone settles it at an estimated end (its true end could not be noted: " + err.Error() + ")."
	}
	report.Notices = append(report.Notices, Notice{Summary: "Ended, but not settled in the ledger", Detail: told + " " + next})
}

// noteUnsettled writes the note; one file for each sandbox, of which the latest
// counts. An end that is noted already is one it cannot have outlived.
func (e *Engine) noteUnsettled(u unsettled) error {
	u.Version, u.At = unsettledVersion, e.now()
	dir := filepath.Join(e.stateDir, unsettledDir)
	file := filepath.Join(dir, string(u.ID)+".json")
	if before, err := readUnsettled(file); err == nil && before.Generation == u.Generation && !before.EndedAt.After(u.EndedAt) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	part, done, err := e.openScratch()
	if err != nil {
		return err
	}
	defer done()
	f, err := os.CreateTemp(part, "unsettled-*")
	if err != nil {
		return err
	}
	_, err = f.Write(mustJSON(u))
	err = errors.Join(err, f.Sync(), f.Close())
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

// notes are the files with what is to be settled, of any ledger.
func (e *Engine) notes() []string {
	files, _ := filepath.Glob(filepath.Join(e.stateDir, unsettledDir, "sbx-*.json")) // the pattern is well formed
	return files
}

// notedFor reads the notes that l may have to take down, by file, and those that
// cannot be read.
func (e *Engine) notedFor(l ledger.Ledger) (noted map[string]unsettled, unread map[string]error) {
	noted, unread = map[string]unsettled{}, map[string]error{}
	for _, name := range e.notes() {
		u, err := readUnsettled(name)
		switch {
		case err != nil && !errors.Is(err, os.ErrNotExist): // else somebody has settled it
			unread[name] = err
		case err == nil && (u.LedgerID == "" || u.LedgerID == l.ID() || u.Ledger == e.LedgerURL()):
			noted[name] = u
		}
	}
	return noted, unread
}

// endsNoted are the sandboxes whose end l has yet to take down.
func (e *Engine) endsNoted(ctx context.Context, l ledger.Ledger) (ids []ID) {
	noted, _ := e.notedFor(l)
	for _, u := range noted {
		if row, err := l.Get(ctx, u.ID); err == nil && row.State != lifecycle.Destroyed && u.about(row) {
			ids = append(ids, u.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// settleNoted takes down what earlier runs noted for this ledger, in the order
// it happened.
func (e *Engine) settleNoted(ctx context.Context, l ledger.Ledger, notify Notify) {
	left := func(name string, err error) {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			notify.tell("Left for later", "what is noted in %s could not be settled: %s", name, err.Error())
		}
	}
	noted, unread := e.notedFor(l)
	for name, err := range unread {
		left(name, err)
	}
	order := slices.SortedFunc(maps.Keys(noted), func(a, b string) int { return noted[a].At.Compare(noted[b].At) })
	for _, name := range order {
		err := e.settleOne(ctx, l, noted[name], notify)
		switch {
		case absent(err):
			continue // another ledger's
		case err == nil:
			err = os.Remove(name)
		}
		left(name, err)
	}
}

func readUnsettled(name string) (unsettled, error) {
	var u unsettled
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, &u)
	}
	if err == nil && (u.Version != unsettledVersion || string(u.ID) != strings.TrimSuffix(filepath.Base(name), ".json")) {
		err = extensions.Invalid("it is not a note of this program", "look at it and remove it")
	}
	return u, err
}

// settleOne closes the row of what was ended. A row that is closed, or went on
// in another generation, needs nothing. NotFound: this ledger has none.
func (e *Engine) settleOne(ctx context.Context, l ledger.Ledger, u unsettled, notify Notify) error {
	row, err := l.Get(ctx, u.ID)
	if err != nil || row.State == lifecycle.Destroyed || !u.about(row) {
		return err
	}
	gone := ending{at: u.EndedAt, source: u.Source, estimated: u.Estimated, usage: u.Usage}
	if seen := lastSeen(row); gone.source == "seen-alive" && seen.After(gone.at) {
		gone.at = seen // by this ledger: the note may be another one's, which knew no more than a receipt
	}
	change := ledger.Change{Event: ledger.NewNote("sandbox.destroying", map[string]any{"why": "ended before, noted at " + u.EndedAt.UTC().Format(time.RFC3339)})}
	if row.State != lifecycle.Destroying {
		change.To = lifecycle.Destroying
	}
	op, err := e.openOperation(ctx, l, row, ledger.IntentDestroy, change, notify)
	if err != nil {
		return stale(err)
	}
	defer op.close()
	return op.discard(ctx, ledger.Confirmed, reasonAt("destroyed", gone, op.row), nil, gone)
}

// about reports that the note is about the life that row has. A receipt that was
// lost does not tell which one it was: it is one that was ready by then.
func (u unsettled) about(row ledger.Sandbox) bool {
	if u.Generation == 0 {
		return !row.ReadyAt.After(u.EndedAt)
	}
	return row.Generation == u.Generation
}
