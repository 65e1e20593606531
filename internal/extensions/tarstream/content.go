package tarstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

const zeroBlock = 4096

var zeros [zeroBlock]byte

// contentHash digests a file's content regardless of which of its zeros are stored and which are holes; holes
// cost nothing. Whole aligned blocks of zeros count as runs. A file without such a block has the SHA-256 of
// its bytes.
type contentHash struct {
	data, runs hash.Hash
	part       []byte // of the incomplete block
	block, run int64  // blocks so far, and how many of the last are zeros
	holed      bool
}

func newContentHash() *contentHash {
	return &contentHash{data: sha256.New(), runs: sha256.New(), part: make([]byte, 0, zeroBlock)}
}

// Write never fails.
func (c *contentHash) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if len(c.part) == 0 && len(p) >= zeroBlock {
			c.take(p[:zeroBlock])
			p = p[zeroBlock:]
			continue
		}
		k := min(zeroBlock-len(c.part), len(p))
		c.part = append(c.part, p[:k]...)
		if p = p[k:]; len(c.part) == zeroBlock {
			c.take(c.part)
			c.part = c.part[:0]
		}
	}
	return n, nil
}

func (c *contentHash) take(block []byte) {
	c.block++
	if bytes.Equal(block, zeros[:]) {
		c.run++
		return
	}
	c.endRun(1)
	c.data.Write(block)
}

// endRun notes the run of zeros that ended ago blocks ago.
func (c *contentHash) endRun(ago int64) {
	if c.run == 0 {
		return
	}
	c.holed = true
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(c.block-ago-c.run))
	binary.BigEndian.PutUint64(b[8:], uint64(c.run))
	c.runs.Write(b[:])
	c.run = 0
}

func (c *contentHash) hole(n int64) error {
	if k := len(c.part); k > 0 {
		k = int(min(int64(zeroBlock-k), n))
		_, _ = c.Write(zeros[:k])
		n -= int64(k)
	}
	c.block += n / zeroBlock
	c.run += n / zeroBlock
	_, _ = c.Write(zeros[:n%zeroBlock])
	return nil
}

// digest ends the content and returns lower-case hex.
func (c *contentHash) digest() string {
	c.endRun(0)
	c.data.Write(c.part)
	if !c.holed {
		return hex.EncodeToString(c.data.Sum(nil))
	}
	all := sha256.New()
	all.Write([]byte("zeros\x00"))
	all.Write(c.runs.Sum(nil))
	all.Write(c.data.Sum(nil))
	return hex.EncodeToString(all.Sum(nil))
}

// ContentDigest returns the Entry.SHA256 of a file with this content.
func ContentDigest(content []byte) string {
	h := newContentHash()
	_, _ = h.Write(content)
	return h.digest()
}
