package composessh

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// squidImage is Debian's squid with the libraries it needs, pushed to a registry
// of the test, so that it has a digest. The daemon forgets it with the test. It
// asks the given name server, as an owner's image might; all else is ours.
func squidImage(t testing.TB, nameServer string) string {
	t.Helper()
	squid, err := exec.LookPath("squid")
	if err != nil {
		if os.Getenv("SANDBOXER_NO_SKIP") == "1" {
			t.Fatal("there is no squid: install squid")
		}
		t.Skip("there is no squid: install squid")
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(name, path string) {
		data, err := os.ReadFile(path)
		must(t, err)
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(name, "/"), Size: int64(len(data)), Mode: 0o755}))
		_, err = w.Write(data)
		must(t, err)
	}
	put("/usr/lib/squid-itself", squid)
	put("/usr/lib/squid/unlinkd", "/usr/lib/squid/unlinkd")
	busybox, err := exec.LookPath("busybox")
	must(t, err)
	put("/bin/busybox", busybox)
	wrapper := "#!/bin/busybox sh\n{ /bin/busybox cat \"$3\"; echo; echo dns_nameservers " + nameServer +
		"; } >/tmp/squid.conf\nexec /usr/lib/squid-itself \"$1\" \"$2\" /tmp/squid.conf\n"
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "usr/sbin/squid", Size: int64(len(wrapper)), Mode: 0o755}))
	_, err = w.Write([]byte(wrapper))
	must(t, err)
	libs, err := exec.CommandContext(t.Context(), "ldd", squid).Output()
	must(t, err)
	for _, word := range strings.Fields(string(libs)) {
		if strings.HasPrefix(word, "/") {
			put(word, word)
		}
	}
	for _, dir := range []string{"/usr/share/squid", "/etc/squid"} {
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				put(path, path)
			}
			return err
		}))
	}
	for _, dir := range []string{"tmp/", "run/", "var/log/squid/", "var/spool/squid/"} {
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o1777}))
	}
	must(t, w.Close())
	r := hosttest.NewRegistry(t, "", "")
	name := r.Addr + "/squid"
	cmd := exec.CommandContext(t.Context(), "docker", "import", "--change", "ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin", "-", name+":test")
	cmd.Stdin = &b
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("docker import: %v: %s", err, out)
	}
	docker(t, "push", "-q", name+":test")
	image := name + "@" + r.Digest("test")
	// What is pulled is what has the digest.
	docker(t, "image", "rm", name+":test")
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "docker", "image", "rm", image).Run() })
	return image
}

// names is a name server with fixed answers, which remembers what it was asked.
type names struct {
	mu    sync.Mutex
	asked []string
}

func serveNames(t testing.TB, c net.PacketConn, zone map[string]string) *names {
	t.Helper()
	n := &names{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 1024)
		for {
			size, from, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer := n.answer(buffer[:size], zone); answer != nil {
				_, _ = c.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Close()
		<-done
	})
	return n
}

func (n *names) answer(query []byte, zone map[string]string) []byte {
	if len(query) < 17 {
		return nil
	}
	var labels []string
	i := 12
	for i < len(query) && query[i] != 0 {
		end := i + 1 + int(query[i])
		if end >= len(query) {
			return nil
		}
		labels = append(labels, string(query[i+1:end]))
		i = end
	}
	name := strings.ToLower(strings.Join(labels, "."))
	n.mu.Lock()
	n.asked = append(n.asked, name)
	n.mu.Unlock()
	end := i + 5
	if end > len(query) {
		return nil
	}
	out := append([]byte{}, query[:end]...)
	out[2], out[3] = 0x81, 0x80
	for k := 6; k < 12; k++ {
		out[k] = 0
	}
	ip, known := zone[name]
	if !known {
		out[3] |= 3
		return out
	}
	if binary.BigEndian.Uint16(query[i+1:]) == 1 { // A
		a := netip.MustParseAddr(ip).As4()
		out[7] = 1
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		out = append(out, a[:]...)
	}
	return out
}

func (n *names) wereAsked(part string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Contains(strings.Join(n.asked, " "), part)
}

// selfSigned is a certificate for any name.
func selfSigned(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"allowed.example"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Through the proxy the listed names can be reached, on their ports, and
// nothing else: no other name, no address, nothing private, nothing beside it.
func TestNamesOnAllowlist(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	s := newSite(t)
	s.config.Host.ProxyImage = squidImage(t, o.second)
	zone := map[string]string{
		"allowed.example": o.first, "sub.wild.example": o.first, "wild.example": o.first, "other.example": o.second,
		"rebound.example": "127.0.0.1", "private.example": "10.1.2.3", "metadata.example": "169.254.169.254", "host.example": o.here,
		"bridge.example": "172.17.0.1",
	}
	server := serveNames(t, o.packets(t, o.second+":53"), zone)
	serve(t, o.listen(t, o.first+":80"), hello)
	serve(t, o.listen(t, o.first+":8080"), hello)
	serve(t, o.listen(t, o.second+":80"), hello)
	serve(t, tls.NewListener(o.listen(t, o.first+":443"),
		&tls.Config{Certificates: []tls.Certificate{selfSigned(t)}, MinVersion: tls.VersionTLS12}), hello)

	b := s.open(t)
	spec := s.spec(t)
	spec.Image, spec.Containers = nil, stack(hosttest.Image(t))
	for _, domain := range []string{"allowed.example", "*.wild.example", "rebound.example", "private.example", "metadata.example",
		"host.example", "bridge.example"} {
		spec.Network.Egress = append(spec.Network.Egress, extensions.EgressRule{Domain: domain, Port: 80},
			extensions.EgressRule{Domain: domain, Port: 443})
	}
	spec.Network.Egress = append(spec.Network.Egress, extensions.EgressRule{CIDR: o.first + "/32", Port: 8080})
	h := s.provision(t, b, onImage(t, spec))
	agent := containerOf(t, spec.ID, "agent")
	requests := []struct {
		what, request string
		good          bool
	}{
		{"a listed name", "GET http://allowed.example/ HTTP/1.0", true},
		{"a listed name in capitals", "GET http://ALLOWED.example/ HTTP/1.0", true},
		{"a sub-domain", "GET http://sub.wild.example/ HTTP/1.0", true},
		{"a tunnel to a listed name", "CONNECT allowed.example:443 HTTP/1.0", true},
		{"a listed network", "CONNECT " + o.first + ":8080 HTTP/1.0", true},
		{"the domain above sub-domains", "GET http://wild.example/ HTTP/1.0", false},
		{"another name", "GET http://other.example/ HTTP/1.0", false},
		{"a name that ends alike", "GET http://notallowed.example/ HTTP/1.0", false},
		{"a name that begins alike", "GET http://allowed.example.other.example/ HTTP/1.0", false},
		{"a name with a user", "GET http://allowed.example@other.example/ HTTP/1.0", false},
		{"another port", "GET http://allowed.example:8080/ HTTP/1.0", false},
		{"a tunnel to another port", "CONNECT allowed.example:22 HTTP/1.0", false},
		{"a tunnel to another name", "CONNECT other.example:443 HTTP/1.0", false},
		{"an address", "GET http://" + o.first + "/ HTTP/1.0", false},
		{"a tunnel to an address", "CONNECT " + o.first + ":443 HTTP/1.0", false},
		{"a number for an address", "GET http://3325256706/ HTTP/1.0", false},
		{"another address of a listed port", "CONNECT " + o.second + ":8080 HTTP/1.0", false},
		{"an IPv6 address", "CONNECT [::ffff:" + o.first + "]:443 HTTP/1.0", false},
		{"a listed name that leads to loopback", "GET http://rebound.example/ HTTP/1.0", false},
		{"a listed name that leads to a private address", "GET http://private.example/ HTTP/1.0", false},
		{"a listed name that leads to the metadata", "GET http://metadata.example/ HTTP/1.0", false},
		{"a listed name that leads to the host", "GET http://host.example/ HTTP/1.0", false},
		{"a listed name that leads to docker0", "CONNECT bridge.example:443 HTTP/1.0", false},
		{"the metadata", "GET http://169.254.169.254/ HTTP/1.0", false},
		{"the proxy's own loopback", "GET http://localhost:3128/ HTTP/1.0", false},
		{"ftp", "GET ftp://allowed.example:80/ HTTP/1.0", false},
		{"a name that tells something", "GET http://secret-in-a-name.other.example/ HTTP/1.0", false},
		{"the cache manager", "GET http://allowed.example:3128/squid-internal-mgr/info HTTP/1.0", false},
	}
	var p strings.Builder
	for _, c := range requests {
		fmt.Fprintf(&p, "par(\\&try_request, %q, '%s');\n", c.what, c.request)
	}
	answers := inside(t, agent, `
sub try_request { my ($name, $request) = @_; socket(my $s, AF_INET, SOCK_STREAM, 0); connect($s, sockaddr_in(3128, scalar gethostbyname("sandboxer-proxy"))) or return out($name, "$!");
	syswrite($s, "$request\r\n\r\n"); my $line = ""; while (IO::Select->new($s)->can_read(10) && sysread($s, my $b, 512)) { $line .= $b; last if $line =~ s/\r?\n.*//s } out($name, $line) }
`+p.String())
	for _, c := range requests {
		if out := answers[c.what]; strings.Contains(out, " 200 ") != c.good || !strings.HasPrefix(out, "HTTP/1.") {
			t.Errorf("%s: %q", c.what, out)
		}
	}
	if server.wereAsked("secret-in-a-name") {
		t.Error("a name that is not listed was looked up")
	}
	if got := docker(t, "exec", agent, "wget", "-q", "-O", "-", "http://allowed.example/"); got != "hello from outside" {
		t.Errorf("a program that knows of proxies got %q", got)
	}
	if env := docker(t, "exec", agent, "env"); !strings.Contains(env, "NO_PROXY=localhost,127.0.0.1,agent,peer\n") {
		t.Errorf("the services beside are not excepted: %s", env)
	}
	for name, end := range inside(t, agent, `
par(\&try_tcp, "direct", "`+o.first+`", 80); par(\&try_udp, "name server", "`+o.second+`", 53, 0, query("allowed.example"));
par(\&try_dns, "DNS", 0); par(\&try_icmp, "ping", "`+o.first+`"); par(\&try_tcp, "past the routes", "`+o.first+`", 80, 1);
par(\&try_tcp, "the proxy's other leg", "`+docker(t, "inspect", "-f", `{{(index .NetworkSettings.Networks "`+string(spec.ID)+`_sandboxer-egress").IPAddress}}`, containerOf(t, spec.ID, proxyService))+`", 3128);`) {
		if strings.HasPrefix(end, "answered") {
			t.Errorf("%s: %s", name, end)
		}
	}
	_, err := b.Teardown(t.Context(), h)
	must(t, err)
	if left := docker(t, "ps", "-aq", "--filter", "label="+extensions.LabelID+"="+string(spec.ID)) +
		docker(t, "network", "ls", "-q", "--filter", "label="+extensions.LabelID+"="+string(spec.ID)); left != "" {
		t.Errorf("left behind: %q", left)
	}
}
