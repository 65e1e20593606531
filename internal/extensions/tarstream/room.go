package tarstream

import (
	"io"
	"os"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What is kept of somebody else's leaves this free on its disk: a twentieth, at
// most 256 MiB. Up to checkEvery bytes together are not worth the question, and
// a file takes a block of the disk at least.
const (
	reservedShare = 20
	maxReserved   = 256 << 20
	checkEvery    = 16 << 20
	diskBlock     = 4 << 10
)

// WithRoom writes to f and stops with KindExhausted before the disk is full,
// so that what somebody else decides the size of never fills it. Where the
// system does not say what is free, nothing stops it.
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

// room counts what is written since the disk was last asked, over all files.
type room struct{ unchecked int64 }

// take comes before n bytes are written to f. Once there is no room, whatever
// comes next is asked about too.
func (r *room) take(f *os.File, n int64) error {
	if r.unchecked+n < checkEvery {
		r.unchecked += n
		return nil
	}
	if free, total, ok := roomOf(f); ok && free-max(n, checkEvery) < min(total/reservedShare, maxReserved) {
		r.unchecked = checkEvery
		return extensions.Errorf(extensions.KindExhausted, "there is no room for it: of the disk of %s, %d MiB are free", f.Name(), free>>20).
			WithRemedy("free some disk space there, or remove what is not needed in the sandbox")
	}
	r.unchecked = 0
	return nil
}
