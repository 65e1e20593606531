package engine_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// office is a machine that gives out its ledger over TLS.
type office struct {
	t       *testing.T
	dir     string // state folder
	catalog string
	cert    string
	key     string
	at      string // address once it was served
	log     *lockedBuffer
	stop    func()
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// selfSigned writes a certificate for this machine, and its key.
func selfSigned(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func newOffice(t *testing.T, catalog string) *office {
	t.Helper()
	o := &office{t: t, dir: t.TempDir(), catalog: catalog, log: &lockedBuffer{}}
	o.cert, o.key = selfSigned(t, o.dir)
	o.token("acme/web") // there has to be a file of tokens
	o.open("127.0.0.1:0")
	return o
}

func (o *office) engine() *engine.Engine {
	o.t.Helper()
	opts := engine.Options{Extensions: all(), StateDir: o.dir, Account: "acme/web"}
	if o.catalog != "" {
		opts.Catalog = []string{o.catalog}
	}
	e, err := engine.New(opts)
	if err != nil {
		o.t.Fatal(err)
	}
	return e
}

// open serves until close, or the end of the test.
func (o *office) open(listen string) {
	o.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	e := o.engine()
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- e.ServeLedger(ctx, engine.ServeOptions{Listen: listen, Certificate: o.cert, Key: o.key, PerSecond: 1e5,
			Ready: func(url string) { ready <- url }, Log: slog.New(slog.NewJSONHandler(o.log, nil))})
	}()
	select {
	case url := <-ready:
		o.at = url + "?ca=" + o.cert
	case err := <-ended:
		cancel()
		o.t.Fatal(err)
	}
	o.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			o.t.Error(err)
		}
		if err := e.Close(); err != nil {
			o.t.Error(err)
		}
	})
	o.t.Cleanup(func() { o.stop() })
}

// reopen serves again where it was served before.
func (o *office) reopen() {
	o.t.Helper()
	host, _, _ := strings.Cut(strings.TrimPrefix(o.at, "https://"), "?")
	o.open(host)
}

func (o *office) token(account string) engine.Secret {
	o.t.Helper()
	e := o.engine()
	defer e.Close()
	token, _, err := e.CreateLedgerToken("", account, 0)
	if err != nil {
		o.t.Fatal(err)
	}
	return token
}

// client is another machine with a token.
func (o *office) client(dir, account string, token engine.Secret) *engine.Engine {
	o.t.Helper()
	opts := engine.Options{Extensions: all(), StateDir: dir, Account: account, Ledger: o.at, LedgerToken: token, Lease: fleetLease}
	if o.catalog != "" {
		opts.Catalog = []string{o.catalog}
	}
	e, err := engine.New(opts)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			o.t.Error(err)
		}
	})
	return e
}

// books is the ledger itself.
func (o *office) books() ledger.Ledger {
	o.t.Helper()
	l, err := ledger.Open(context.Background(), ledger.DefaultURL(o.dir), ledger.Options{})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = l.Close() })
	return l
}

func (o *office) sound() {
	o.t.Helper()
	if r, err := o.books().Verify(context.Background()); err != nil || !r.OK() || r.Events == 0 {
		o.t.Errorf("%+v, %v", r, err)
	}
}

func TestALifeOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	o := newOffice(t, f.catalog)
	ctx := context.Background()
	token := o.token("acme/web")
	a, b := o.client(t.TempDir(), "acme/web", token), o.client(t.TempDir(), "acme/web", token)
	s, err := a.Create(ctx, mine, nil, nil)
	if err != nil {
		t.Fatal(err, extensions.RemedyOf(err))
	}
	if _, err := b.Create(ctx, mine, nil, nil); !extensions.IsKind(err, extensions.KindConflict) || !strings.Contains(err.Error(), string(s.ID)) {
		t.Errorf("the name is taken elsewhere: %v", err)
	}
	longer, err := b.ExtendTTL(ctx, s.Receipt, time.Hour)
	if err != nil || !longer.ExpiresAt.Equal(s.CreatedAt.Add(time.Hour)) {
		t.Errorf("extended elsewhere: %v, %v", longer.ExpiresAt, err)
	}
	r, err := a.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	if err != nil || r.AlreadyGone {
		t.Errorf("destroyed: %+v, %v", r, err)
	}
	if left := f.alive(); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	if n, findings, err := a.VerifyLedger(ctx); err != nil || len(findings) > 0 || n == 0 {
		t.Errorf("verified from afar: %d events, %q, %v", n, findings, err)
	}
	o.sound()
	if log := o.log.String(); !strings.Contains(log, `"operation":"begin"`) || strings.Contains(log, token.Reveal()) || strings.Contains(log, "sbxl_") {
		t.Errorf("the log: %s", log)
	}
}

func TestATokenThatIsRevokedOpensNothing(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "")
	ctx := context.Background()
	token := o.token("acme/web")
	e := o.client(t.TempDir(), "acme/web", token)
	if _, err := e.List(ctx, false); err != nil {
		t.Fatal(err)
	}
	other := o.client(t.TempDir(), "other/web", token)
	if s, err := other.Create(ctx, own, nil, nil); !extensions.IsKind(err, extensions.KindUnauthorized) || s.ID != "" || extensions.RemedyOf(err) == "" {
		t.Errorf("another account: %v, %v", s.ID, err)
	}
	desk := o.engine()
	defer desk.Close()
	all, err := desk.LedgerTokens("")
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, k := range all {
		if err := desk.RevokeLedgerToken("", k.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.List(ctx, false); !extensions.IsKind(err, extensions.KindUnauthorized) || strings.Contains(err.Error(), token.Reveal()) {
		t.Errorf("revoked: %v", err)
	}
	if err := desk.RevokeLedgerToken("", all[0].ID); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("revoked again: %v", err)
	}
}
