package provider

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ledgerServer is `sandboxer ledger serve` on a machine of its own.
type ledgerServer struct {
	t         *testing.T
	b         *bed
	bin       string
	cert, key string
	listen    string
	cmd       *exec.Cmd
	log       bytes.Buffer
	read      chan struct{}
}

func newLedgerServer(t *testing.T) *ledgerServer {
	t.Helper()
	requireTerraform(t)
	bin, err := builtProvider()
	if err != nil {
		t.Fatal(err)
	}
	s := &ledgerServer{t: t, b: newBed(t), bin: filepath.Join(bin, "terraform-provider-sandboxer"), listen: "127.0.0.1:0"}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	s.cert = s.b.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	s.key = s.b.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})))
	return s
}

// command is the command line on the server's machine.
func (s *ledgerServer) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.bin, append(args, "--state-dir", s.b.state, "--catalog", s.b.catalog)...)
	return cmd
}

func (s *ledgerServer) must(args ...string) string {
	s.t.Helper()
	var told bytes.Buffer
	cmd := s.command(args...)
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%v: %v\n%s%s", args, err, out, &told)
	}
	return string(out)
}

// start serves, where it was served before.
func (s *ledgerServer) start() {
	s.t.Helper()
	s.cmd = s.command("ledger", "serve", "--listen", s.listen, "--tls-cert", s.cert, "--tls-key", s.key)
	lines, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	all := bufio.NewScanner(lines)
	for all.Scan() {
		s.log.WriteString(all.Text() + "\n")
		var line struct{ Msg, URL string }
		if json.Unmarshal(all.Bytes(), &line) == nil && line.Msg == "serving" {
			s.listen = strings.TrimPrefix(line.URL, "https://")
			break
		}
	}
	s.read = make(chan struct{})
	go func() {
		defer close(s.read)
		for all.Scan() {
			s.log.WriteString(all.Text() + "\n")
		}
	}()
	if strings.HasSuffix(s.listen, ":0") {
		s.t.Fatalf("the server does not serve: %s", &s.log)
	}
	s.t.Cleanup(s.stop)
}

// stop ends the server as a service manager does.
func (s *ledgerServer) stop() {
	s.t.Helper()
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Error(err)
	}
	<-s.read
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("the server ended with %v: %s", err, &s.log)
	}
	s.cmd = nil
}

func (s *ledgerServer) address() string { return "https://" + s.listen + "?ca=" + s.cert }

func TestTerraformWithALedgerOverHTTP(t *testing.T) {
	t.Parallel()
	s := newLedgerServer(t)
	token := strings.TrimSpace(s.must("ledger", "token", "create", "acme/web"))
	s.start()
	c := newCLI(t, newBed(t))
	c.env = append(c.env, "SANDBOXER_LEDGER_TOKEN="+token)
	write := func(body string) {
		t.Helper()
		c.write(body)
		file := filepath.Join(c.dir, "main.tf")
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(strings.Replace(string(text), "  account ", "  ledger = \""+s.address()+"\"\n  account ", 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(sandboxHCL("name = \"far\"\nttl = \"1h\""))
	c.must("plan", "-out=p", "-no-color")
	c.must("apply", "-no-color", "p")
	c.planIsEmpty()
	if list := s.must("sandbox", "list", "--account", "acme/web"); !strings.Contains(list, "far") {
		t.Errorf("the server's ledger has %s", list)
	}
	write(sandboxHCL("name = \"far\"\nttl = \"2h\""))
	c.apply()
	c.planIsEmpty()

	s.stop()
	if out := c.destroy(); !strings.Contains(out, "not settled in the ledger") {
		t.Errorf("destroyed without the server:\n%s", out)
	}
	s.start()
	sweep := exec.Command(s.bin, "sweep", "--state-dir", c.b.state, "--catalog", c.b.catalog, "--account", "acme/web", "--ledger", s.address())
	sweep.Env = c.env
	if out, err := sweep.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if list := s.must("sandbox", "list", "--account", "acme/web"); strings.Contains(list, "far") {
		t.Errorf("not settled: %s", list)
	}
	s.must("ledger", "verify")
	s.stop()
	err := filepath.WalkDir(c.b.root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(b, []byte(token)) {
			t.Errorf("%s holds the token", path)
		}
		return err
	})
	if err != nil || strings.Contains(s.log.String(), token) {
		t.Errorf("%v; the server's log: %s", err, &s.log)
	}
}
