package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Teardown implements extensions.Backend.
func (b *Backend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	r, err := b.teardown(ctx, h)
	return r, failed("teardown", h.ID, err)
}

func (b *Backend) teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	if err := ctx.Err(); err != nil {
		return extensions.CleanupReport{}, err
	}
	bx, err := b.settings.resolve(h)
	if err != nil {
		return extensions.CleanupReport{}, err
	}
	b.settings.sweepHalves()
	gone := false
	lock, err := bx.lock(ctx, lockWait)
	if errors.Is(err, fs.ErrNotExist) {
		var left record
		if left, err = bx.read(); err == nil { // the folder was removed, but not everything else
			gone = bx.lost(left)
			lock, err = bx.make(ctx)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return extensions.CleanupReport{AlreadyGone: true}, nil
	}
	if err != nil {
		return extensions.CleanupReport{}, err
	}
	defer func() { _ = lock.Close() }()
	rec, err := bx.read()
	if err != nil {
		return extensions.CleanupReport{}, err
	}
	if rec.Account != "" && rec.Account != b.settings.account {
		return extensions.CleanupReport{}, extensions.Errorf(extensions.KindConflict, "%s belongs to the account %q", h.ID, rec.Account)
	}
	before := b.observe(bx, rec)
	paused := bx.paused(before)
	report := extensions.CleanupReport{AlreadyGone: gone, StartedAt: before.StartedAt, EndedAt: before.EndedAt, Removed: []string{"record"}}
	if rec.Init.alive() {
		report.Removed = append(report.Removed, "init and all it started", "workspace")
	}
	if len(rec.Cgroups) > 0 {
		report.Removed = append(report.Removed, "cgroups")
	}
	if err := b.remove(bx, rec, true); err != nil {
		return report, err
	}
	if report.EndedAt.IsZero() && !report.StartedAt.IsZero() && !gone {
		report.EndedAt = time.Now().UTC()
	}
	if !report.StartedAt.IsZero() && !report.EndedAt.IsZero() {
		report.Usage = &extensions.Usage{StartedAt: report.StartedAt, EndedAt: report.EndedAt,
			Running: max(report.EndedAt.Sub(report.StartedAt)-paused, 0), Paused: paused}
	}
	return report, nil
}

// remove ends and removes everything of a sandbox. Its folder, only if asked, and then its record go last:
// while anything may exist, they say so. The caller holds the lock. A canceled caller must not leave half a
// sandbox, so the work has its own time limit.
func (b *Backend) remove(bx box, rec record, folder bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	// First, so that the keeper removes nothing re-created in the same place.
	if err := rec.Keeper.kill(ctx); err != nil {
		return fmt.Errorf("ending the keeper of %s (pid %d): %w", bx.id, rec.Keeper.PID, err)
	}
	if err := rec.Init.kill(ctx); err != nil {
		return fmt.Errorf("ending the init of %s (pid %d): %w", bx.id, rec.Init.PID, err)
	}
	failpoint("killed", bx.dir)
	if rec.Mode == modeNone || rec.Mode == "" && rec.Init != nil {
		if err := bx.killGroups(rec); err != nil {
			return err
		}
	}
	if err := removeCgroups(rec.Cgroups); err != nil {
		return fmt.Errorf("removing the cgroups of %s: %w", bx.id, err)
	}
	failpoint("uncgrouped", bx.dir)
	if !folder {
		return errors.Join(bx.empty(), removeAll(bx.beside(endSuffix)))
	}
	// A kill in between leaves a folder without a record. It counts as a half-made sandbox, which the next
	// teardown removes.
	if err := os.RemoveAll(bx.path(filesName)); err != nil {
		return err
	}
	if err := os.RemoveAll(bx.dir); err != nil {
		return err
	}
	if _, err := os.Lstat(bx.dir); !errors.Is(err, fs.ErrNotExist) {
		return extensions.Errorf(extensions.KindInternal, "the folder %s is still there", bx.dir)
	}
	failpoint("unfoldered", bx.dir)
	return bx.forget()
}

// empty removes the folder's content but keeps the folder, which is locked.
func (b box) empty() error {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(b.path(e.Name())); err != nil {
			return err
		}
	}
	return nil
}
