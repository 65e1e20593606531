package vendortest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"testing"
)

// Shows reports whether text has a secret, as it is or encoded.
func Shows(text, secret string) bool {
	for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret))} {
		if strings.Contains(text, strings.TrimRight(form, "=")) {
			return true
		}
	}
	return false
}

// Confined fails the test if a vendor heard one of keys other than in its own header field (keys has the fields by key), or
// secret other than in the body of an operation in into. It also fails if none of those had it, because then it shows nothing.
func (w *Wire) Confined(t testing.TB, keys map[string]string, secret string, into ...string) {
	t.Helper()
	carried := 0
	for _, r := range w.Requests() {
		header := r.Header.Clone()
		for key, field := range keys {
			if has := header.Get(field); has == key || has == "Bearer "+key {
				header.Del(field)
			}
		}
		rest := r.On + r.Path + r.Query
		for name, values := range header {
			rest += "\n" + name + strings.Join(values, "\n")
		}
		body := plain(r.Body)
		for key := range keys {
			if Shows(rest+body, key) {
				t.Errorf("%s: a key is in %s outside its header", w.vendor, r.On)
			}
		}
		switch has := Shows(body, secret); {
		case has && slices.Contains(into, r.On):
			carried++
		case has, Shows(rest, secret):
			t.Errorf("%s: %s has the sandbox's secret", w.vendor, r.On)
		}
	}
	if carried == 0 {
		t.Errorf("%s: the secret was never sent, so this shows nothing", w.vendor)
	}
}

// plain is a body without compression.
func plain(body []byte) string {
	if zip, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
		if text, err := io.ReadAll(zip); err == nil {
			return string(text)
		}
	}
	return string(body)
}
