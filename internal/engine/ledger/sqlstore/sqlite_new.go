package sqlstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/owned"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// there reports whether a ledger was begun at path. We move a new ledger into place whole, so an empty
// file is either one that somebody created for us, or all that is left of a ledger. It runs before SQLite
// opens the file, since SQLite removes a write-ahead log beside an empty file.
func (s *store) there(path string) (bool, error) {
	exists, size, err := sizeOf(path)
	if err != nil || size > 0 {
		return size > 0, s.unseen(err)
	}
	sign := s.signOfEarlier(path, exists)
	if sign == "" {
		return false, nil
	}
	// Whoever has begun it meanwhile left signs too.
	if _, size, err = sizeOf(path); err != nil || size > 0 {
		return size > 0, s.unseen(err)
	}
	if !exists {
		return false, fault.Errorf(extensions.KindInternal, "the ledger %s is missing, but %s is still there", s.url, sign).
			WithRemedy("restore its file, or move the remaining files away to begin a new ledger; " +
				"sandboxes can still be read and destroyed from their state")
	}
	return false, fault.Errorf(extensions.KindInternal,
		"the ledger %s is damaged: its file is empty, but %s shows that it was not empty before",
		s.url, sign).
		WithRemedy("restore a backup, or move the file and the remaining files beside it away to begin a new ledger, which does not know " +
			"the earlier sandboxes; " +
			"those can still be read and destroyed from their state")
}

func (s *store) unseen(err error) error {
	if err == nil {
		return nil
	}
	return fault.Errorf(extensions.KindUnavailable, "reading the ledger %s: %w", s.url,
		err).WithRemedy("check who owns the ledger and its folder")
}

// sizeOf returns 0 for a missing file too.
func sizeOf(path string) (exists bool, size int64, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	return true, info.Size(), nil
}

// signOfEarlier names the evidence of an earlier ledger at path, "" if there is none. If the file is
// missing, somebody removed it, and only what a new ledger would destroy counts.
func (s *store) signOfEarlier(path string, exists bool) string {
	for _, log := range []string{path + "-wal", path + "-journal"} {
		if _, size, err := sizeOf(log); err != nil || size > 0 {
			return log
		}
	}
	if !exists {
		return ""
	}
	for _, beside := range []string{path + "-shm", holdersOf(path)} {
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	if s.options.Earlier != nil {
		return s.options.Earlier()
	}
	return ""
}

// begin creates a ledger beside path and moves it into place whole: a process that dies meanwhile leaves
// nothing that looks like a damaged ledger. The caller holds the writer lock.
func (s *store) begin(ctx context.Context, path string) (err error) {
	if path, err = placeOf(path); err != nil {
		return s.unseen(err)
	}
	unfinished := path + ".new"
	if err := removeWithLogs(unfinished); err != nil { // left by one that died
		return s.unseen(err)
	}
	f, err := os.OpenFile(unfinished, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fault.Errorf(extensions.KindUnavailable, "creating the ledger file: %w", err).WithRemedy("use a file that you can write to")
	}
	defer func() {
		if err != nil {
			_ = removeWithLogs(unfinished)
		}
	}()
	steps, err := migrations()
	if err != nil {
		return fault.New(extensions.KindInternal, "", err)
	}
	made := &store{url: s.url, options: s.options, dialect: s.dialect}
	if made.writer, err = made.connect(unfinished, 1, writing...); err != nil {
		return err
	}
	if err = made.journal(ctx); err == nil {
		_, err = made.migrate(ctx, steps, true)
	}
	if err = errors.Join(err, made.writer.Close()); err != nil {
		return err
	}
	if err := os.Rename(unfinished, path); err != nil {
		return fault.Errorf(extensions.KindUnavailable, "creating the ledger file: %w", err).WithRemedy("use a file that you can write to")
	}
	if folder, err := os.Open(filepath.Dir(path)); err == nil {
		_ = folder.Sync() // so that the name survives a power cut too, where the system supports it
		_ = folder.Close()
	}
	return nil
}

// placeOf resolves symbolic links.
func placeOf(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return path, owned.IgnoreMissing(err)
	}
	return filepath.EvalSymlinks(path)
}

func removeWithLogs(path string) error {
	var errs []error
	for _, f := range []string{path, path + "-journal", path + "-wal", path + "-shm"} {
		errs = append(errs, owned.IgnoreMissing(os.Remove(f)))
	}
	return errors.Join(errs...)
}
