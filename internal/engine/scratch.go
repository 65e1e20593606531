package engine

import (
	"path/filepath"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/owned"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// scratch is this engine's own folder for what is only needed while it works:
// streams on their way, clones, halves of files. It goes with the last use of
// it, or in the next run that changes anything, where the process was killed.
type scratch struct {
	mu     sync.Mutex
	folder *owned.Folder
	users  int
}

// spoolDir is where scratch folders are, and the locks of mirrored folders.
func (e *Engine) spoolDir() string { return filepath.Join(e.stateDir, "spool") }

// sweepScratch removes what killed processes left.
func (e *Engine) sweepScratch() { owned.Sweep(e.spoolDir(), "sync-*.lock") }

// openScratch returns the folder, to be used until done is called.
func (e *Engine) openScratch() (dir string, done func(), err error) {
	s := &e.scratch
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		e.sweepScratch()
		if s.folder, err = owned.NewFolder(e.spoolDir()); err != nil {
			return "", nil, extensions.Errorf(extensions.KindUnavailable, "a folder for temporary files cannot be made: %w", err).
				WithRemedy("make room in %s, or move it with the provider's state_dir", e.stateDir)
		}
	}
	s.users++
	return s.folder.Path, sync.OnceFunc(s.leave), nil
}

func (s *scratch) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		_ = s.folder.Close() // what stays has no owner any more, and goes at the next sweep
	}
}
