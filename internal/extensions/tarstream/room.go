package tarstream

import (
	"io"
	"os"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// What a stream that is kept leaves free on its disk: a twentieth, at most
// 256 MiB. A stream of up to checkEvery bytes is not worth the question.
const (
	reservedShare = 20
	maxReserved   = 256 << 20
	checkEvery    = 16 << 20
)

// WithRoom writes to f and stops with KindExhausted before the disk is full,
// so that what somebody else decides the size of never fills it. Where the
// system does not say what is free, nothing stops it.
func WithRoom(f *os.File) io.Writer { return &roomy{f: f} }

type roomy struct {
	f         *os.File
	unchecked int
}

func (r *roomy) Write(p []byte) (int, error) {
	if r.unchecked += len(p); r.unchecked > checkEvery {
		r.unchecked = 0
		if err := roomFor(r.f, checkEvery); err != nil {
			return 0, err
		}
	}
	return r.f.Write(p)
}

func roomFor(f *os.File, n int64) error {
	free, total, ok := roomOf(f)
	if !ok || n < checkEvery || free-n >= min(total/reservedShare, maxReserved) {
		return nil
	}
	return extensions.Errorf(extensions.KindExhausted, "there is no room for it: of the disk of %s, %d MiB are free", f.Name(), free>>20).
		WithRemedy("free some disk space there, or remove what is not needed in the sandbox")
}
