package hosttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Key is a key pair in the formats that ssh programs use.
type Key struct {
	Signer  ssh.Signer
	Line    string // "ssh-ed25519 AAAA…", without a comment or line break
	private []byte // OpenSSH PEM
}

// NewKey creates a key pair: "ed25519", "ecdsa" or "rsa".
func NewKey(t testing.TB, kind string) Key {
	t.Helper()
	var private crypto.PrivateKey
	var err error
	switch kind {
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		t.Fatalf("hosttest: no such kind of key: %q", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	k := Key{private: pem.EncodeToMemory(block)}
	if k.Signer, err = ssh.ParsePrivateKey(k.private); err != nil {
		t.Fatal(err)
	}
	k.Line = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.Signer.PublicKey())))
	return k
}

// Write stores the private key at path, with mode 0600, and the public key beside it as path.pub.
func (k Key) Write(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path, k.private, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".pub", []byte(k.Line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

var shared = struct {
	sync.Mutex
	keys map[string]Key
}{keys: map[string]Key{}}

// sharedKey is created once per process: most tests need a key, not a particular one.
func sharedKey(t testing.TB, use, kind string) Key {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	k, ok := shared.keys[use+kind]
	if !ok {
		k = NewKey(t, kind)
		shared.keys[use+kind] = k
	}
	return k
}
