package conformance

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
)

// source is a workspace source whose files are in memory.
type source struct{ tar []byte }

func newSource(files map[string]string) source {
	var entries []tar.Header
	folders := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for dir := range folders {
		entries = append(entries, tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755})
	}
	for name, content := range files {
		entries = append(entries, tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))})
	}
	slices.SortFunc(entries, func(a, b tar.Header) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return source{tar: pack(entries, files)}
}

// pack writes entries with the contents of the regular files.
func pack(entries []tar.Header, contents map[string]string) []byte {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf) // writing to memory fails only for malformed headers
	for _, h := range entries {
		_ = tw.WriteHeader(&h)
		if h.Typeflag == tar.TypeReg {
			_, _ = io.WriteString(tw, contents[h.Name])
		}
	}
	_ = tw.Close()
	return buf.Bytes()
}

func (s source) Open(ctx context.Context) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(s.tar)), ctx.Err()
}

func (s source) Digest() string {
	sum := sha256.Sum256(s.tar)
	return hex.EncodeToString(sum[:])
}

func (s source) Size() int64    { return int64(len(s.tar)) }
func (s source) Origin() string { return "files of the conformance suite" }

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }
