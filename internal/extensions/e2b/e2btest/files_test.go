package e2btest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/filesystem"
)

// transfer calls a sandbox's daemon for files.
func (c client) transfer(method, id, token string, query url.Values, kind string, body []byte) (int, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.v.SandboxURL+"/files?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = into(id, token, &filesystem.StatRequest{}).Header()
	if token == "" {
		req.Header.Del("X-Access-Token")
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := c.h.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestFilesGoInAndOut(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	at := func(path string) url.Values { return url.Values{"path": {path}} }
	if status, text := c.transfer("POST", id, token, at("deep/er/a"), "application/octet-stream", []byte("raw\x00\xff")); status != http.StatusOK ||
		!strings.Contains(text, `"path":"/home/user/deep/er/a"`) {
		t.Errorf("%d %s", status, text)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, name := range []string{"/tmp/one", "two"} {
		part, err := form.CreateFormFile("file", name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write([]byte("of " + name))
	}
	_ = form.Close()
	if status, text := c.transfer("POST", id, token, nil, form.FormDataContentType(), body.Bytes()); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	for path, want := range map[string]string{"deep/er/a": "200 raw\x00\xff", "/tmp/one": "200 of /tmp/one", "~/two": "200 of two",
		"none": "404 ", "deep": "400 ", "/dev/../tmp/one": "200 of /tmp/one"} {
		status, text := c.transfer("GET", id, token, at(path), "", nil)
		if got := fmt.Sprintf("%d %s", status, text); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", path, got)
		}
	}
	if out, _, err := c.shell(id, token, "echo inside >/tmp/mine; ln -s /tmp/mine link; ls -ln two | cut -d' ' -f1; whoami; rm two", nil); err != nil || out != "-rw-r--r--\nuser\n" {
		t.Errorf("%q, %v", out, err)
	}
	if status, text := c.transfer("GET", id, token, at("link"), "", nil); status != http.StatusOK || text != "inside\n" {
		t.Errorf("through a link: %d %q", status, text)
	}
}

func TestASignatureStandsForTheToken(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	query := url.Values{"path": {"/etc/passwd"}}
	if status, _ := c.transfer("GET", id, "", query, "", nil); status != http.StatusUnauthorized {
		t.Errorf("nothing at all: %d", status)
	}
	sum := sha256.Sum256([]byte("/etc/passwd:read::" + token))
	query.Set("signature", "v1_"+base64.RawStdEncoding.EncodeToString(sum[:]))
	if status, text := c.transfer("GET", id, "", query, "", nil); status != http.StatusOK {
		t.Errorf("signed: %d %s", status, text)
	}
	query.Set("path", "/etc/group")
	if status, _ := c.transfer("GET", id, "", query, "", nil); status != http.StatusUnauthorized {
		t.Errorf("signed for another: %d", status)
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	fs := filesystem.NewFilesystemClient(c.h, c.v.SandboxURL)
	if _, err := fs.MakeDir(t.Context(), into(id, token, &filesystem.MakeDirRequest{Path: "a/b/c"})); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.MakeDir(t.Context(), into(id, token, &filesystem.MakeDirRequest{Path: "a/b"})); connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Errorf("again: %v", err)
	}
	if out, _, err := c.shell(id, token, "echo 12345 >a/file; ln -s file a/link; chmod 640 a/file", nil); err != nil || out != "" {
		t.Fatal(out, err)
	}
	if _, err := fs.Move(t.Context(), into(id, token, &filesystem.MoveRequest{Source: "a/b/c", Destination: "/tmp/new/c"})); err != nil {
		t.Error(err)
	}
	list := func(depth uint32) (out []string) {
		res, err := fs.ListDir(t.Context(), into(id, token, &filesystem.ListDirRequest{Path: "a", Depth: depth}))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range res.Msg.GetEntries() {
			out = append(out, fmt.Sprintf("%s %s %d %o %s", strings.TrimPrefix(e.GetPath(), "/home/user/"), e.GetType(), e.GetSize(), e.GetMode(), e.GetSymlinkTarget()))
		}
		return out
	}
	want := []string{"a/b FILE_TYPE_DIRECTORY", "a/file FILE_TYPE_FILE 6 640 ", "a/link FILE_TYPE_FILE 6 640 /home/user/a/file"}
	if got := list(1); len(got) != 3 || !strings.HasPrefix(got[0], want[0]) || !slices.Equal(got[1:], want[1:]) {
		t.Errorf("%q", got)
	}
	if _, err := fs.Remove(t.Context(), into(id, token, &filesystem.RemoveRequest{Path: "a"})); err != nil {
		t.Error(err)
	}
	if _, err := fs.Stat(t.Context(), into(id, token, &filesystem.StatRequest{Path: "a"})); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("%v", err)
	}
}
