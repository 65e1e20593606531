package owned

import (
	"path/filepath"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Scratch is a process's own folder for what is only needed while it works:
// streams on their way, clones, halves of files. It goes with the last use of
// it, or in the next run that changes anything, where the process was killed.
type Scratch struct {
	Dir string // where scratch folders are, and the locks of mirrored folders

	mu     sync.Mutex
	folder *Folder
	users  int
}

// Sweep removes what killed processes left.
func (s *Scratch) Sweep() { Sweep(s.Dir, "sync-*.lock") }

// Open returns the folder, to be used until done is called.
func (s *Scratch) Open() (dir string, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		s.Sweep()
		if s.folder, err = NewFolder(s.Dir); err != nil {
			return "", nil, extensions.Errorf(extensions.KindUnavailable, "a folder for temporary files cannot be made: %w", err).
				WithRemedy("make room in %s, or move it with the provider's state_dir", filepath.Dir(s.Dir))
		}
	}
	s.users++
	return s.folder.Path, sync.OnceFunc(s.leave), nil
}

func (s *Scratch) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		_ = s.folder.Close() // what stays has no owner any more, and goes at the next sweep
	}
}
