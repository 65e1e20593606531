package tarstream

import (
	"context"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// OpenSource opens a snapshot of another place. Its bytes are verified as VerifyReader does: stage them, and use
// them after io.EOF.
func OpenSource(ctx context.Context, src extensions.SnapshotSource) (io.ReadCloser, error) {
	want, ok := extensions.HexOfDigest(src.Digest())
	if !ok {
		return nil, extensions.Errorf(extensions.KindInvalid, "the digest %q of a snapshot is malformed", extensions.Clean(src.Digest(), 80))
	}
	r, err := src.Open(ctx)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{VerifyReader(r, want), r}, nil
}
