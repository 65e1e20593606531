package daytonatest

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
)

// The bucket of builds, and what lets somebody into it for a while.
const (
	bucketName   = "daytona-builds"
	storeKey     = "AKIASTORE"
	StoreSecret  = "store-secret-canary"
	StoreSession = "store-session-canary"
)

// lend lets somebody into the store.
func (v *Vendor) lend(*http.Request, []byte) (any, error) {
	return v.api.Only("StorageAccessDto", map[string]any{"accessKey": storeKey, "secret": StoreSecret, "sessionToken": StoreSession,
		"storageUrl": v.storeURL, "organizationId": v.Organization, "bucket": bucketName, "region": "us-east-2"}), nil
}

// store is the bucket, as far as builds need it.
func (v *Vendor) store() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		defer v.mu.Unlock()
		if !strings.Contains(r.Header.Get("Authorization"), "Credential="+storeKey+"/") || r.Header.Get("X-Amz-Security-Token") != StoreSession {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		key, inside := strings.CutPrefix(r.URL.Path, "/"+bucketName)
		key = strings.TrimPrefix(key, "/")
		switch {
		case !inside || key != "" && !strings.HasPrefix(key, v.Organization+"/"):
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodPut:
			text, err := io.ReadAll(r.Body)
			v.do(err)
			v.stored[key], v.puts = text, v.puts+1
		case v.stored[r.URL.Query().Get("prefix")] != nil:
			_, _ = io.WriteString(w, "<ListBucketResult><Contents><Key>"+r.URL.Query().Get("prefix")+"</Key></Contents></ListBucketResult>")
		default:
			_, _ = io.WriteString(w, "<ListBucketResult></ListBucketResult>")
		}
	})
}

// whole reports whether the store has all that a sandbox is built from.
func (v *Vendor) whole(s *sandbox) bool {
	return !slices.ContainsFunc(s.contexts, func(hash string) bool { return v.stored[v.Organization+"/"+hash+"/context.tar"] == nil })
}

// Built is what a sandbox was built from.
type Built struct {
	Dockerfile string
	Files      map[string]string // by their paths, as the builder takes them
}

// Built tells what a sandbox was built from.
func (v *Vendor) Built(id string) Built {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.sandboxes[id]
	out := Built{Dockerfile: s.dockerfile, Files: map[string]string{}}
	for _, hash := range s.contexts {
		for all := tar.NewReader(bytes.NewReader(v.stored[v.Organization+"/"+hash+"/context.tar"])); ; {
			h, err := all.Next()
			if err != nil {
				break
			}
			text, err := io.ReadAll(all)
			v.do(err)
			if h.Typeflag == tar.TypeReg {
				out.Files[h.Name] = string(text)
			}
		}
	}
	return out
}

// Puts counts what was sent to the store.
func (v *Vendor) Puts() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.puts
}
