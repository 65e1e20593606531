package owned

import (
	"path/filepath"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Scratch is a process's own folder for temporary data: streams, clones, partial files. The last user
// removes it; if the process was killed, the next run that changes anything does.
type Scratch struct {
	Dir string // parent of scratch folders and of the locks of mirrored folders

	mu     sync.Mutex
	folder *Folder
	users  int
}

// Sweep removes what killed processes left.
func (s *Scratch) Sweep() { Sweep(s.Dir, "sync-*.lock") }

// Open returns the folder, which stays until done is called.
func (s *Scratch) Open() (dir string, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		s.Sweep()
		if s.folder, err = NewFolder(s.Dir); err != nil {
			return "", nil, extensions.Errorf(extensions.KindUnavailable, "a folder for temporary files cannot be created: %w", err).
				WithRemedy("free space in %s, or move it with the provider's state_dir", filepath.Dir(s.Dir))
		}
	}
	s.users++
	return s.folder.Path, sync.OnceFunc(s.leave), nil
}

func (s *Scratch) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		_ = s.folder.Close() // what remains has no owner and goes at the next sweep
	}
}
