package extensions

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"io"
	"strings"
)

// ID names one sandbox for its whole life, across backends and retries. It is
// "sbx-" and 20 characters of lower-case base32 (100 random bits) and so a
// valid DNS label, container name, namespace and user name part.
type ID string

const (
	idPrefix = "sbx-"
	// SnapshotIDPrefix starts the id of a snapshot, which otherwise has the
	// form of a sandbox id.
	SnapshotIDPrefix = "snp-"
	idChars          = 20
)

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewID draws a sandbox id from r; nil means crypto/rand.
func NewID(r io.Reader) (ID, error) {
	s, err := draw(idPrefix, r)
	return ID(s), err
}

// NewSnapshotID draws a snapshot id from r; nil means crypto/rand.
func NewSnapshotID(r io.Reader) (string, error) { return draw(SnapshotIDPrefix, r) }

func draw(prefix string, r io.Reader) (string, error) {
	if r == nil {
		r = rand.Reader
	}
	var b [13]byte // 104 bits; 20 characters carry 100 of them
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return "", fmt.Errorf("drawing an id: %w", err)
	}
	return prefix + idEncoding.EncodeToString(b[:])[:idChars], nil
}

// ParseID checks the form of a sandbox id.
func ParseID(s string) (ID, error) {
	if !hasIDForm(s, idPrefix) {
		return "", Errorf(KindInvalid, "%q is not a sandbox id: want %q and %d characters of a-z2-7", s, idPrefix, idChars)
	}
	return ID(s), nil
}

// ValidSnapshotID reports whether s has the form of a snapshot id.
func ValidSnapshotID(s string) bool { return hasIDForm(s, SnapshotIDPrefix) }

func hasIDForm(s, prefix string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || len(rest) != idChars {
		return false
	}
	for _, c := range rest {
		if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}
