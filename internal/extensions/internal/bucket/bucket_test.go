package bucket_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/bucket"
)

func TestAFileIsPutSignedAndSeen(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		if !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=AKIA/") || !strings.Contains(auth, "/us-east-1/s3/aws4_request") ||
			!strings.Contains(auth, "x-amz-content-sha256") || r.Header.Get("X-Amz-Security-Token") != "session" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>SignatureDoesNotMatch</Code></Error>")
			return
		}
		if r.Method == http.MethodPut {
			text, _ := io.ReadAll(r.Body)
			files[strings.TrimPrefix(r.URL.Path, "/store/builds/")] = string(text)
			return
		}
		prefix := r.URL.Query().Get("prefix")
		if r.URL.Path != "/store/builds" || files[prefix] == "" {
			prefix = "another"
		}
		_, _ = io.WriteString(w, "<ListBucketResult><Contents><Key>"+prefix+"</Key></Contents></ListBucketResult>")
	}))
	defer s.Close()
	b := bucket.Bucket{Endpoint: s.URL + "/store", Name: "builds", Key: "AKIA", Secret: extensions.NewSecret("secret"),
		Session: extensions.NewSecret("session"), HTTP: s.Client()}
	if has, err := b.Has(t.Context(), "org/a b/context.tar"); err != nil || has {
		t.Fatalf("before: %v, %v", has, err)
	}
	sum := sha256.Sum256([]byte("content"))
	if err := b.Put(t.Context(), "org/a b/context.tar", strings.NewReader("content"), 7, hex.EncodeToString(sum[:])); err != nil {
		t.Fatal(err)
	}
	if has, err := b.Has(t.Context(), "org/a b/context.tar"); err != nil || !has || files["org/a b/context.tar"] != "content" {
		t.Errorf("after: %v, %v, %q", has, err, files)
	}
	b.Key = "other"
	err := b.Put(t.Context(), "x", strings.NewReader(""), 0, hex.EncodeToString(sum[:]))
	if !extensions.IsKind(err, extensions.KindUnavailable) || !strings.Contains(err.Error(), "403 SignatureDoesNotMatch") {
		t.Errorf("refused: %v", err)
	}
	if b.Endpoint = "http://store.example"; !extensions.IsKind(b.Put(t.Context(), "x", strings.NewReader(""), 0, ""), extensions.KindUnavailable) {
		t.Error("an address without encryption was used")
	}
}
