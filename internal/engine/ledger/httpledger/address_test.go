package httpledger

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://ledger.example":                   "https://ledger.example",
		"https://ledger.example:7777/":             "https://ledger.example:7777",
		"HTTPS://ledger.example":                   "https://ledger.example",
		"HTTP://ledger.example":                    "",
		"https://ledger.example/team/a/":           "https://ledger.example/team/a",
		"https://ledger.example?ca=/etc/ca.pem":    "https://ledger.example",
		"https://[2001:db8::1]:7777":               "https://[2001:db8::1]:7777",
		"http://127.0.0.1:7777":                    "http://127.0.0.1:7777",
		"http://[::1]:7777":                        "http://[::1]:7777",
		"http://localhost":                         "http://localhost",
		"http://ledger.example":                    "",
		"http://127.0.0.1.example":                 "",
		"http://10.0.0.1":                          "",
		"https://":                                 "",
		"https:///path":                            "",
		"https:ledger.example":                     "",
		"https://user@ledger.example":              "",
		"https://:hunter2@ledger.example":          "",
		"https://sbxl_hunter2@ledger.example":      "",
		"https://ledger.example?token=hunter2":     "",
		"https://ledger.example?ca=":               "",
		"https://ledger.example?ca=ca.pem":         "",
		"https://ledger.example?ca=/a&ca=/b":       "",
		"https://ledger.example?ca=%zz":            "",
		"https://ledger.example#hunter2":           "",
		"https://ledger.example:port":              "",
		"https://ledger.example/%zz?token=hunter2": "",
	} {
		err := ledger.CheckURL(address)
		if want == "" {
			shown := ledger.ShownURL(address)
			if !extensions.IsKind(err, extensions.KindInvalid) || extensions.RemedyOf(err) == "" || strings.Contains(err.Error()+extensions.RemedyOf(err)+shown, "hunter2") {
				t.Errorf("%q: %v (shown %s)", address, err, shown)
			}
			continue
		}
		if err != nil || ledger.ShownURL(address) != want || !ledger.Shared(address) {
			t.Errorf("%q: %v, shown %s", address, err, ledger.ShownURL(address))
		}
	}
}

func TestWhoIsNotTheServerIsNotTold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newShop(t, nil)
	_, err := Open(ctx, s.at.URL, ledger.Options{}) // the system trusts nobody like that
	if !extensions.IsKind(err, extensions.KindUnauthorized) || !strings.Contains(extensions.RemedyOf(err), "ca=") {
		t.Errorf("an unknown CA: %v (%s)", err, extensions.RemedyOf(err))
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for name, address := range map[string]string{
		"no server of ours":  plain.URL,
		"no TLS":             strings.Replace(plain.URL, "http:", "https:", 1),
		"a folder as the CA": s.at.URL + "?ca=" + t.TempDir(),
	} {
		if _, err := Open(ctx, address, ledger.Options{}); err == nil || extensions.IsKind(err, extensions.KindUnavailable) || extensions.RemedyOf(err) == "" || strings.Contains(err.Error(), testToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var seen string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get("Authorization") }))
	defer elsewhere.Close()
	away := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer away.Close()
	if _, err := Open(ctx, away.URL, ledger.Options{}); err == nil || seen != "" {
		t.Errorf("led elsewhere: %v, which was told %q", err, seen)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	config := s.http.HTTPClient.Transport.(*http.Transport).TLSClientConfig
	if config.MinVersion != tls.VersionTLS12 {
		t.Errorf("%x", config.MinVersion)
	}
}

func TestTokensOfAClient(t *testing.T) {
	t.Parallel()
	given, err := credential(extensions.NewSecret(" " + testToken + "\n"))
	if err != nil || given.Reveal() != testToken {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"sbxl_short", "Bearer " + testToken, testToken + "x", "hunter2"} {
		if _, err := credential(extensions.NewSecret(bad)); !extensions.IsKind(err, extensions.KindUnauthorized) || strings.Contains(err.Error()+extensions.RemedyOf(err), bad) {
			t.Errorf("%v", err)
		}
	}
}

func TestATokenFromAFile(t *testing.T) { // not parallel: the environment is everybody's
	t.Setenv(EnvToken, "")
	file := filepath.Join(t.TempDir(), "token")
	t.Setenv(EnvTokenFile, file)
	if _, err := credential(extensions.Secret{}); !extensions.IsKind(err, extensions.KindUnauthorized) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(file, []byte(testToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := credential(extensions.Secret{}); err != nil || got.Reveal() != testToken {
		t.Errorf("%v", err)
	}
	t.Setenv(EnvTokenFile, "")
	if _, err := credential(extensions.Secret{}); !extensions.IsKind(err, extensions.KindUnauthorized) || extensions.RemedyOf(err) == "" {
		t.Errorf("none: %v", err)
	}
}
