package hosttest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Registry is as much of an image registry as a push and a pull take, on this machine's loopback: digests are what it
// gives to images, and a daemon believes no one else. With a user it serves only who has the password.
type Registry struct {
	Addr           string // host:port
	OnPull         func() // before each manifest that is given; nil = nothing
	user, password string

	mu    sync.Mutex
	blobs map[string][]byte // by digest
	kinds map[string]string // media types, by digest and tag
	tags  map[string]string // to digests
	parts map[string][]byte // uploads, by number

	refused, served int
}

// NewRegistry serves until the test ends; user "" lets everybody in.
func NewRegistry(t testing.TB, user, password string) *Registry {
	t.Helper()
	r := &Registry{user: user, password: password, blobs: map[string][]byte{}, kinds: map[string]string{}, tags: map[string]string{},
		parts: map[string][]byte{}}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.Addr = s.Listener.Addr().String()
	return r
}

// Add puts Image there under a name, "private/tool:1", and returns its reference. No engine has it under that name.
func (r *Registry) Add(t testing.TB, name string) string {
	t.Helper()
	from, ref := Image(t), r.Addr+"/"+name
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "docker", append([]string{"--config", dir}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("docker %s: %v: %s", args[0], err, out)
		}
	}
	if r.user != "" {
		auth := base64.StdEncoding.EncodeToString([]byte(r.user + ":" + r.password))
		text := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, r.Addr, auth)
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("image", "tag", from, ref)
	run("push", ref)
	run("image", "rm", ref)
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "docker", "image", "rm", "--force", ref).Run() })
	return ref
}

// Digest returns what a tag names.
func (r *Registry) Digest(tag string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tags[tag]
}

// Asked counts the requests that were refused for want of the password, and those that brought it.
func (r *Registry) Asked() (refused, served int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused, r.served
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if user, password, _ := req.BasicAuth(); r.user != "" && (user != r.user || password != r.password) {
		r.refused++
		w.Header().Set("WWW-Authenticate", `Basic realm="a test"`)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
		return
	}
	r.served++
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
		if r.OnPull != nil {
			r.OnPull()
		}
		if digest, tagged := r.tags[manifest]; tagged {
			manifest = digest
		}
		r.give(w, req, manifest)
	case isBlob:
		r.give(w, req, blob)
	}
}

func (r *Registry) give(w http.ResponseWriter, req *http.Request, digest string) {
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
