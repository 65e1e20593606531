package workspace

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/owned"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// SyncOptions configure a SyncBack.
type SyncOptions struct {
	// SpoolDir holds the lock that separates two calls for one folder. It is created with mode 0700 if
	// missing.
	SpoolDir string
	DryRun   bool // report only
	// Missing are paths of the sandbox that exist there but are not in its stream, each with everything
	// below it. They are reported and left alone here.
	Missing []string
	// Incomplete says that the stream lacks more, and nobody knows what: nothing is deleted here.
	Incomplete bool
}

// Report says what SyncBack did, or with DryRun would do. Paths are relative, in the order of
// tarstream.ComparePaths, with control characters replaced.
type Report struct {
	Written   []string // files, links and folders created or replaced
	Deleted   []string
	Conflicts []Conflict // changed on both sides; the local side was kept
	Refused   []Conflict // changed there but not brought back: by rule, or because this side refuses it
	// Base is what the next call must start from; empty without a base.
	Base tarstream.Manifest
}

// Conflict is a path that was left unchanged here.
type Conflict struct{ Path, Reason string }

// Clean reports whether everything was brought back.
func (r Report) Clean() bool { return len(r.Conflicts) == 0 && len(r.Refused) == 0 }

// SyncBack brings a sandbox's workspace, given as a tar stream, back into the folder dir. base is what the
// workspace started from; nil if unknown.
//
// What changed only there is written (temporary file, fsync, rename) or deleted. What changed only here
// stays. What changed on both sides is no conflict if both are now equal; otherwise it is reported and
// never touched. Files are equal if their content and the owner's execute bit are. Without a base, only
// new paths are created, and nothing is deleted. Ignored paths are neither written nor deleted. A second
// call with the same stream changes nothing; after a crash it finishes the work. What this side refuses (a
// name that its file system rejects, a folder without permission, a full disk) is reported, and the rest
// goes on.
//
// Never brought back: links that may lead out of the folder, and anything that git would run or obey here
// (see guard). An empty workspace deletes nothing; a stream without its end mark is refused.
func SyncBack(ctx context.Context, dir string, base *tarstream.Manifest, tar *io.SectionReader, opts SyncOptions) (Report, error) {
	s := &syncer{ctx: ctx, dry: opts.DryRun, hasBase: base != nil, noDelete: opts.Incomplete, missing: map[string]bool{}}
	if base != nil {
		s.base = index(*base)
	}
	dir = expandHome(dir)
	if err := checkFolder(dir); err != nil {
		return Report{}, err
	}
	if err := os.MkdirAll(opts.SpoolDir, 0o700); err != nil {
		return Report{}, fmt.Errorf("create the spool folder: %w", err)
	}
	unlock, err := lockFolder(ctx, dir, opts.SpoolDir)
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	return s.inside(dir, tar, opts)
}

// inside does the work while the folder is locked.
func (s *syncer) inside(dir string, tar *io.SectionReader, opts SyncOptions) (Report, error) {
	var err error
	if s.root, err = os.OpenRoot(dir); err != nil {
		return Report{}, extensions.Errorf(extensions.KindInvalid, "the workspace folder %q cannot be entered: %w", extensions.Clean(dir, 300),
			bare(err))
	}
	defer s.root.Close()
	if s.ignore, err = loadIgnore(s.root); err != nil {
		return Report{}, err
	}
	sweepSpool(opts.SpoolDir)
	if err := s.receive(tar); err != nil {
		return Report{}, err
	}
	for _, p := range opts.Missing {
		if !s.ignore.skip(p, false) {
			s.missing[p] = true
			_ = s.refuse(p, "it could not be read in the sandbox")
		}
	}
	if err = s.run(); err == nil && !opts.DryRun {
		s.report.Base = s.nextBase()
	}
	return s.sorted(), err
}

// lockFolder keeps two processes on this machine from syncing into one folder at once.
func lockFolder(ctx context.Context, dir, spool string) (func(), error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, fmt.Errorf("find the workspace folder: %w", bare(err))
	}
	h := tarstream.NewHasher()
	_, _ = h.Write([]byte(real))
	lock, err := owned.Lock(ctx, filepath.Join(spool, "sync-"+h.Digest()[:16]+".lock"))
	if err != nil {
		return nil, fmt.Errorf("wait for another transfer into the workspace folder: %w", err)
	}
	return func() { _ = lock.Release() }, nil
}

// maxSynced limits the memory for comparing, some 500 bytes per entry.
const maxSynced = 1_000_000

func (s *syncer) receive(tar *io.SectionReader) (err error) {
	// The stream is already here, so it bounds everything that can come of it.
	opts := tarstream.Options{MaxBytes: tar.Size(), MaxEntries: maxSynced, Skip: s.ignore.skip}
	if s.copy, err = tarstream.Index(s.ctx, tar, opts); err != nil {
		return fmt.Errorf("read the sandbox's workspace: %w", err)
	}
	s.there = index(s.copy.Manifest)
	return nil
}

func index(m tarstream.Manifest) map[string]tarstream.Entry {
	all := make(map[string]tarstream.Entry, len(m.Entries))
	for _, e := range m.Entries {
		all[e.Path] = e
	}
	return all
}

func (s *syncer) sorted() Report {
	slices.SortFunc(s.report.Written, tarstream.ComparePaths)
	slices.SortFunc(s.report.Deleted, tarstream.ComparePaths)
	byPath := func(a, b Conflict) int { return tarstream.ComparePaths(a.Path, b.Path) }
	slices.SortFunc(s.report.Conflicts, byPath)
	slices.SortFunc(s.report.Refused, byPath)
	return s.report
}
