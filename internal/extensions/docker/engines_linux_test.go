package docker

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// authority signs certificates of engines and their users.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
	last int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	var cert, _ = a.issue(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.pem = cert
	return a
}

// issue returns a certificate and its key, as PEM. An authority without one issues its own.
func (a *authority) issue(t *testing.T, c *x509.Certificate) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	a.last++
	c.SerialNumber, c.Subject = big.NewInt(a.last), pkix.Name{CommonName: fmt.Sprint("sandboxer test ", a.last)}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	by, with := a.cert, a.key
	if by == nil {
		by, with = c, k
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &k.PublicKey, with)
	must(t, err)
	if a.cert == nil {
		a.cert, err = x509.ParseCertificate(der)
		must(t, err)
		a.key = k
	}
	raw, err := x509.MarshalECPrivateKey(k)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}))
}

// subordinate is where an engine with a map of users puts them.
const subordinate = 700_000

// engineUser is the user that only an engine of a test knows.
const engineUser = 64999

// engineFolder makes a folder for an engine, and commands that give it mounts of its own, where a user is known by name
// and has subordinate ones.
func engineFolder(t testing.TB, name string, programs ...string) (dir, script string) {
	t.Helper()
	hosttest.Docker(t)
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil || os.Getuid() != 0 {
			t.Skipf("an engine of its own needs root and %s", p)
		}
	}
	dir, err := os.MkdirTemp("", "sbxd")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o711))
	mapped := fmt.Sprintf("%s:%d:65536\n", name, subordinate)
	script = "set -e; mount --make-rprivate /; mount -t tmpfs none /run/containerd 2>/dev/null || true\n"
	for file, more := range map[string]string{"/etc/passwd": fmt.Sprintf("%s:x:%d:%[2]d::/:/bin/sh\n", name, engineUser),
		"/etc/group": fmt.Sprintf("%s:x:%d:\n", name, engineUser), "/etc/subuid": mapped, "/etc/subgid": mapped} {
		var known []byte
		if file != "/etc/subuid" && file != "/etc/subgid" {
			known, err = os.ReadFile(file)
			must(t, err)
		}
		own := filepath.Join(dir, filepath.Base(file))
		must(t, os.WriteFile(own, append(known, more...), 0o644))
		script += fmt.Sprintf("mount --bind %s %s\n", own, file)
	}
	return dir, script
}

// engineOfItsOwn starts an engine with TLS that maps users, with a folder, mounts and a network of its own: an engine
// without a bridge removes that of another one beside it. It returns its socket and its address, at which the test
// listens for it.
func engineOfItsOwn(t *testing.T, ca *authority) (socket, address string) {
	t.Helper()
	dir, script := engineFolder(t, "sbxmapped", "dockerd", "unshare", "mount")
	put := func(name, text string) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, []byte(text), 0o644))
		return file
	}
	cert, key := ca.issue(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address = l.Addr().String()
	listener, err := l.(*net.TCPListener).File()
	must(t, err)
	must(t, l.Close())
	socket = filepath.Join(dir, "s")
	script += "export LISTEN_FDS=1 LISTEN_PID=$$; exec dockerd --host unix://" + socket + " --host fd:// --tlsverify --tlscacert " + put("ca", ca.pem) + " --tlscert " +
		put("cert", cert) + " --tlskey " + put("key", key) + " --data-root " + dir + "/data --exec-root " + dir + "/exec --pidfile " + dir +
		"/pid --bridge none --iptables=false --userns-remap sbxmapped"
	cmd := exec.Command("unshare", "--mount", "--net", "sh", "-c", script)
	cmd.ExtraFiles = []*os.File{listener}
	startEngine(t, cmd, socket)
	must(t, listener.Close())
	return socket, address
}

// startEngine starts an engine, waits until it answers, and ends it with the test.
func startEngine(t testing.TB, cmd *exec.Cmd, socket string) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	must(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			_ = cmd.Process.Kill()
			t.Errorf("the engine did not end: %s", said.Bytes())
		}
	})
	for end := time.Now().Add(time.Minute); exec.Command("docker", "-H", "unix://"+socket, "version").Run() != nil; time.Sleep(200 * time.Millisecond) {
		select {
		case err := <-done:
			done <- err
			t.Fatalf("the engine ended: %v: %s", err, said.Bytes())
		default:
		}
		if time.Now().After(end) {
			t.Fatal("the engine does not answer")
		}
	}
}

// load gives an engine the test's image.
func load(t testing.TB, socket string) string {
	t.Helper()
	image := hosttest.Image(t)
	if out, err := exec.Command("sh", "-c", "docker save "+image+" | docker -H unix://"+socket+" load").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return image
}

// An engine elsewhere: TLS with certificates of both sides, and a map of users as a rootless engine has one.
func TestAnEngineWithTLSAndMappedUsers(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	socket, address := engineOfItsOwn(t, ca)
	image := hosttest.Image(t)
	if out, err := exec.Command("sh", "-c", "docker save "+image+" | docker -H unix://"+socket+" load").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	forClients := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	cert, key := ca.issue(t, &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: forClients})
	secret := extensions.NewSecret
	open := func(given map[string]extensions.Secret) *Backend {
		x, err := New().Open(t.Context(), extensions.Config{Binding: "ext.docker", Account: "acme/tls", Credentials: given,
			Values: map[string]any{"endpoint": "tcp://" + address}})
		must(t, err)
		t.Cleanup(func() { _ = x.Close() })
		return x.(*Backend)
	}
	stranger := newAuthority(t)
	otherCert, otherKey := stranger.issue(t, &x509.Certificate{ExtKeyUsage: forClients})
	for what, given := range map[string]map[string]extensions.Secret{
		"a stranger's certificate": {"ca": secret(ca.pem), "cert": secret(otherCert), "key": secret(otherKey)},
		"no certificate":           {"ca": secret(ca.pem)},
		"a stranger's engine":      {"ca": secret(stranger.pem), "cert": secret(cert), "key": secret(key)},
	} {
		if _, err := open(given).Status(t.Context(), nil); err == nil || !extensions.IsKind(err, extensions.KindUnauthorized) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b := open(map[string]extensions.Secret{"ca": secret(ca.pem), "cert": secret(cert), "key": secret(key)})
	cfg := extensions.Config{Account: "acme/tls"}
	loaded := exttest.With(func(s *extensions.Spec) { s.Image = &extensions.Image{Pull: image} })
	spec := exttest.Spec(t, cfg, exttest.WithSecret("A", "b"), loaded)
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	t.Cleanup(func() { _, err := b.Teardown(t.Context(), h); _ = err })
	if got := inside(t, b, h, "", "id -u; echo x >f; stat -c %u f; cut -c1-40 /proc/self/uid_map"); !strings.HasPrefix(got, "0\n0\n") ||
		!strings.Contains(got, fmt.Sprint(subordinate)) {
		t.Errorf("inside: %q", got)
	}
	fork, _, err := b.Provision(t.Context(), forkOf(exttest.Spec(t, cfg, loaded), h))
	must(t, err)
	if got := inside(t, b, fork, "", "cat f; stat -c %u f"); got != "x\n0" {
		t.Errorf("the fork reads %q", got)
	}
	other := newSite(t).open(t) // engines of one machine may have the same id
	if _, err := other.Teardown(t.Context(), h); !extensions.IsKind(err, extensions.KindUnreachable) || !errors.Is(err, extensions.ErrElsewhere) {
		t.Errorf("another engine was asked to end it: %v", err)
	}
	if list, err := other.Status(t.Context(), []extensions.Handle{h}); err != nil || list[0].Phase != extensions.PhaseUnreachable {
		t.Errorf("another engine shows it as %+v, %v", list, err)
	}
	for _, h := range []extensions.Handle{fork, h} {
		_, err := b.Teardown(t.Context(), h)
		must(t, err)
	}
}
