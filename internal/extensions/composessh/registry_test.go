package composessh

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// registry is as much of an image registry as a push and a pull take: digests
// are what it gives to images, and a daemon believes no one else.
type registry struct {
	addr string

	mu    sync.Mutex
	blobs map[string][]byte // by digest
	kinds map[string]string // media types, by digest and tag
	tags  map[string]string // to digests
	parts map[string][]byte // uploads, by number
}

func newRegistry(t testing.TB) *registry {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	r := &registry{addr: l.Addr().String(), blobs: map[string][]byte{}, kinds: map[string]string{}, tags: map[string]string{}, parts: map[string][]byte{}}
	serve(t, l, r)
	return r
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := req.URL.Path
	_, upload, isUpload := strings.Cut(path, "/blobs/uploads/")
	_, blob, isBlob := strings.Cut(path, "/blobs/")
	_, manifest, isManifest := strings.Cut(path, "/manifests/")
	switch {
	case isUpload && req.Method == http.MethodPost:
		w.Header().Set("Location", fmt.Sprintf("%s%d", path, len(r.parts)))
		r.parts[fmt.Sprint(len(r.parts))] = nil
		w.WriteHeader(http.StatusAccepted)
	case isUpload:
		body, _ := io.ReadAll(req.Body)
		r.parts[upload] = append(r.parts[upload], body...)
		w.Header().Set("Location", path)
		w.Header().Set("Range", fmt.Sprintf("0-%d", max(len(r.parts[upload])-1, 0)))
		if req.Method == http.MethodPatch {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		digest := digestOf(r.parts[upload])
		if digest != req.URL.Query().Get("digest") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.blobs[digest] = r.parts[upload]
		w.Header().Set("Docker-Content-Digest", digest)
		w.WriteHeader(http.StatusCreated)
	case isManifest && req.Method == http.MethodPut:
		body, _ := io.ReadAll(req.Body)
		digest := digestOf(body)
		r.blobs[digest], r.tags[manifest], r.kinds[digest] = body, digest, req.Header.Get("Content-Type")
		w.Header().Set("Docker-Content-Digest", digest)
		w.WriteHeader(http.StatusCreated)
	case isManifest:
		if digest, tagged := r.tags[manifest]; tagged {
			manifest = digest
		}
		r.give(w, req, manifest)
	case isBlob:
		r.give(w, req, blob)
	}
}

func (r *registry) give(w http.ResponseWriter, req *http.Request, digest string) {
	body, ok := r.blobs[digest]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if kind := r.kinds[digest]; kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	if req.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
