package httpledger

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestTokensInAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "new", "tokens.yaml")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	text, made, err := CreateToken(file, "acme/web", now, 0)
	if err != nil || !tokenForm.MatchString(text) {
		t.Fatal(text, err)
	}
	other, _, err := CreateToken(file, "acme", now, 0)
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if info, serr := os.Stat(file); err != nil || serr != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(body), text) {
		t.Errorf("%v %v: %s", err, serr, body)
	}
	tokens, err := OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	who, ok := tokens.Authenticate(text)
	if !ok || who.Account != "acme/web" || who.Token != made.ID {
		t.Errorf("%+v", who)
	}
	if who, ok := tokens.Authenticate(other); !ok || who.Account != "acme" {
		t.Errorf("%+v", who)
	}
	for _, bad := range []string{"", text[:len(text)-1], strings.ToUpper(text), made.SHA256} {
		if who, ok := tokens.Authenticate(bad); ok || who != (Principal{}) {
			t.Errorf("%q opens %+v", bad, who)
		}
	}
	if err := RevokeToken(file, made.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := tokens.Authenticate(text); ok {
		t.Error("a revoked token opens")
	}
	if err := RevokeToken(file, made.ID); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("%v", err)
	}
	if list, err := ListTokens(file); err != nil || len(list) != 1 || list[0].Account != "acme" || !list[0].CreatedAt.Equal(now) {
		t.Errorf("%+v, %v", list, err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTokens(file); !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(extensions.RemedyOf(err), "chmod 600") {
		t.Errorf("others may read it: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, ok := tokens.Authenticate(other); ok {
		t.Error("without the file somebody is let in")
	}
}

func TestFilesThatAreNotOfTokens(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	for name, body := range map[string]string{
		"no version":    "tokens: []\n",
		"another one":   "version: 2\ntokens: []\n",
		"unknown field": "version: 1\ntokens: []\nadmin: true\n",
		"no account":    "version: 1\ntokens: [{id: a, sha256: " + sum + "}]\n",
		"a short hash":  "version: 1\ntokens: [{id: a, account: acme/web, sha256: abcd}]\n",
		"one id twice":  "version: 1\ntokens: [{id: a, account: x/y, sha256: " + sum + "}, {id: a, account: x/z, sha256: " + sum + "}]\n",
		"no YAML":       "{",
		"half a name":   "version: 1\ntokens: [{id: a, account: acme/, sha256: " + sum + "}]\n",
		"three names":   "version: 1\ntokens: [{id: a, account: acme/web/x, sha256: " + sum + "}]\n",
		"a blank":       "version: 1\ntokens: [{id: a, account: \"acme /web\", sha256: " + sum + "}]\n",
	} {
		file := filepath.Join(t.TempDir(), "tokens.yaml")
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenTokens(file); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestATokenExpires(t *testing.T) {
	t.Parallel()
	shop := newShop(t, nil)
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	text, made, err := CreateToken(file, "acme/web", now, time.Hour)
	if err != nil || !made.ExpiresAt.Equal(now.Add(time.Hour)) {
		t.Fatal(made, err)
	}
	if _, _, err := CreateToken(file, "acme/web", now, -time.Hour); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("below zero: %v", err)
	}
	ever, _, err := CreateToken(file, "acme/web", now, 0)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewServer(Config{Ledger: shop.base, View: func(Principal) ledger.Ledger { return shop.base }, Authenticate: tokens.Authenticate, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	asks := func(token string) *httptest.ResponseRecorder {
		return post(h, opHello, `{}`, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
	}
	now = now.Add(time.Hour - time.Second)
	if w := asks(text); w.Code != http.StatusOK {
		t.Errorf("a second before: %d %s", w.Code, w.Body)
	}
	now = now.Add(time.Second)
	if w := asks(text); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), made.ID+" expired at 2026-03-01T13:00:00Z") || !strings.Contains(w.Body.String(), "have a new one made") {
		t.Errorf("then: %d %s", w.Code, w.Body)
	}
	if w := asks(ever); w.Code != http.StatusOK {
		t.Errorf("one without an end: %d %s", w.Code, w.Body)
	}
}
