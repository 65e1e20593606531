package tarstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// DigestReader hashes and counts what passes through it.
type DigestReader struct {
	r io.Reader
	h hash.Hash
	n int64
}

// NewDigestReader wraps r.
func NewDigestReader(r io.Reader) *DigestReader { return &DigestReader{r: r, h: sha256.New()} }

func (d *DigestReader) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	d.h.Write(p[:n])
	d.n += int64(n)
	return n, err
}

// Digest is the lower-case hex SHA-256 of the bytes read so far.
func (d *DigestReader) Digest() string { return hex.EncodeToString(d.h.Sum(nil)) }

// Size is the number of bytes read so far.
func (d *DigestReader) Size() int64 { return d.n }

// VerifyReader passes r through and, in place of io.EOF, fails with
// KindInvalid where the bytes' SHA-256 is not want (lower-case hex). What was
// read before that is not verified: commit to it only after io.EOF. Unpack
// reads its stream to the end.
func VerifyReader(r io.Reader, want string) io.Reader {
	return &verifier{DigestReader: NewDigestReader(r), want: want}
}

type verifier struct {
	*DigestReader
	want string
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.DigestReader.Read(p)
	if err == io.EOF && v.Digest() != v.want {
		return n, extensions.Errorf(extensions.KindInvalid,
			"the stream does not match its digest: sha256 %s was expected, %s arrived in %d bytes",
			extensions.Clean(v.want, 64), v.Digest(), v.n).
			WithRemedy("Do not use this copy; take it again from its source.")
	}
	return n, err
}

// ctxReader ends a copy between two reads once the context is done.
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
