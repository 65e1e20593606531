package tarstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Hasher hashes and counts the bytes written to it.
type Hasher struct {
	h hash.Hash
	n int64
}

// NewHasher returns a Hasher for a new digest.
func NewHasher() *Hasher { return &Hasher{h: sha256.New()} }

// Write never fails.
func (d *Hasher) Write(p []byte) (int, error) {
	d.n += int64(len(p))
	return d.h.Write(p)
}

// Digest returns the lower-case hex SHA-256 of the bytes so far.
func (d *Hasher) Digest() string { return hex.EncodeToString(d.h.Sum(nil)) }

// Size returns the number of bytes so far.
func (d *Hasher) Size() int64 { return d.n }

// DigestReader hashes and counts the bytes read through it.
type DigestReader struct {
	*Hasher
	r io.Reader
}

// NewDigestReader wraps r.
func NewDigestReader(r io.Reader) *DigestReader { return &DigestReader{NewHasher(), r} }

func (d *DigestReader) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	_, _ = d.Hasher.Write(p[:n])
	return n, err
}

// VerifyReader passes r through. If the SHA-256 of its bytes is not want (lower-case hex), it fails with
// KindInvalid instead of io.EOF. Bytes read before io.EOF are not verified: do not commit to them earlier.
// Unpack reads its stream to the end.
func VerifyReader(r io.Reader, want string) io.Reader {
	return &verifier{DigestReader: NewDigestReader(r), want: want}
}

type verifier struct {
	*DigestReader
	want string
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.DigestReader.Read(p)
	if errors.Is(err, io.EOF) && v.Digest() != v.want {
		return n, extensions.Errorf(extensions.KindInvalid,
			"the stream does not match its digest: sha256 %s was expected, %s arrived in %d bytes",
			extensions.Clean(v.want, 64), v.Digest(), v.n).
			WithRemedy("Do not use this copy; fetch it again from its source.")
	}
	return n, err
}

// ctxReader ends a copy between two reads once ctx is done.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
