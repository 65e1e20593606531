package tarstream

import (
	"io"
	"os"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Data that others determine leaves this much of the disk free: a twentieth, at most 256 MiB. Up to
// checkEvery bytes are written without asking, and every file counts for at least one disk block.
const (
	reservedShare = 20
	maxReserved   = 256 << 20
	checkEvery    = 16 << 20
	diskBlock     = 4 << 10
)

// WithRoom returns a writer to f that stops with KindExhausted before the disk is full, so that data whose size
// others determine never fills it. If the system does not report free space, nothing stops it.
func WithRoom(f *os.File) io.Writer { return &roomy{f: f} }

type roomy struct {
	f *os.File
	room
}

func (r *roomy) Write(p []byte) (int, error) {
	if err := r.take(r.f, int64(len(p))); err != nil {
		return 0, err
	}
	return r.f.Write(p)
}

// room counts the bytes written, over all files, since the disk was last asked.
type room struct{ unchecked int64 }

// take is called before n bytes are written to f. Once there is no room, it checks every call.
func (r *room) take(f *os.File, n int64) error {
	if r.unchecked+n < checkEvery {
		r.unchecked += n
		return nil
	}
	if free, total, ok := roomOf(f); ok && free-max(n, checkEvery) < min(total/reservedShare, maxReserved) {
		r.unchecked = checkEvery
		return extensions.Errorf(extensions.KindExhausted, "no space for it: the disk of %s has %d MiB free", f.Name(), free>>20).
			WithRemedy("free some disk space there, or remove files in the sandbox")
	}
	r.unchecked = 0
	return nil
}
