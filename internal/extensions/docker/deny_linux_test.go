package docker

import (
	"archive/tar"
	"bytes"
	"cmp"
	"debug/elf"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// listen counts what reaches this machine by TCP and UDP on a port of all its addresses.
func listen(t *testing.T) (port string, heard *atomic.Int64) {
	t.Helper()
	heard = &atomic.Int64{}
	l, err := net.Listen("tcp", ":0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	u, err := net.ListenPacket("udp", ":"+port)
	must(t, err)
	t.Cleanup(func() { _ = u.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			heard.Add(1)
			_ = c.Close()
		}
	}()
	go func() {
		for {
			if _, _, err := u.ReadFrom(make([]byte, 100)); err != nil {
				return
			}
			heard.Add(1)
		}
	}()
	return port, heard
}

// built is a static program of testdata, as tar.
func built(t *testing.T, name string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", file, "testdata/"+name+"/main.go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	program, err := os.ReadFile(file)
	must(t, err)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(program))}))
	_, err = w.Write(program)
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

// addresses are those of a sandbox's containers, and the first of their subnets, which a gateway would have.
func addresses(t testing.TB, h extensions.Handle) (all []string) {
	for _, id := range strings.Fields(docker(t, "ps", "--quiet", "--filter", "label="+extensions.LabelID+"="+string(h.ID))) {
		text := docker(t, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", id)
		for _, at := range strings.Fields(text) {
			four := net.ParseIP(at).To4()
			four[3] = four[3]&^0xf + 1
			all = append(all, at, four.String())
		}
	}
	return all
}

func TestNothingLeavesAClosedSandbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	port, heard := listen(t)
	program := built(t, "escape")
	for _, at := range []string{"127.0.0.1:53", hostAddress(t) + ":53"} { // where an engine asks for others' names
		if u, err := net.ListenPacket("udp", at); err == nil {
			t.Cleanup(func() { _ = u.Close() })
			go func() {
				if _, _, err := u.ReadFrom(make([]byte, 100)); err == nil {
					heard.Add(1)
				}
			}()
		}
	}
	neighbor := s.become(t, b, s.pair(t, port))
	to := []string{"169.254.169.254:80", "1.1.1.1:53", "8.8.8.8:53", "255.255.255.255:" + port, "224.0.0.1:" + port, "[ff02::1%1]:" + port}
	links, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range links {
		if ip := a.(*net.IPNet).IP; !ip.IsLoopback() {
			for _, p := range []string{port, "22", "2375", "2376"} {
				to = append(to, net.JoinHostPort(ip.String(), p))
			}
		}
	}
	for _, at := range addresses(t, neighbor) {
		to = append(to, net.JoinHostPort(at, port))
	}
	for what, spec := range map[string]extensions.Spec{"alone": onImage(t, exttest.Spec(t, s.config)), "with services": s.pair(t, "1")} {
		h := s.become(t, b, spec)
		var own []string // of which only the services answer
		for _, at := range addresses(t, h) {
			own = append(own, net.JoinHostPort(at, port))
		}
		must(t, b.Upload(t.Context(), h, "", bytes.NewReader(program)))
		r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Command: slices.Concat([]string{"./escape"}, to)})
		must(t, err)
		out := strings.TrimSpace(string(r.Stdout))
		if what != "alone" {
			out = strings.TrimSpace(strings.Replace(out, "an interface eth0", "", 1))
			r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Command: slices.Concat([]string{"./escape"}, own)})
			must(t, err)
			if bytes.Contains(r.Stdout, []byte("tcp")) {
				t.Errorf("somebody else is at its addresses: %s", r.Stdout)
			}
		}
		if r.ExitCode != 0 || out != "" || heard.Load() != 0 {
			t.Errorf("%s: exit code %d, heard %d times, ways out:\n%s%s", what, r.ExitCode, heard.Load(), r.Stdout, r.Stderr)
		}
	}

	open, _ := s.provision(t, b, exttest.With(func(s *extensions.Spec) { s.Network.Default = "allow" }))
	must(t, b.Upload(t.Context(), open, "", bytes.NewReader(program)))
	at, _, err := net.ParseCIDR(docker(t, "network", "inspect", "--format", "{{(index .IPAM.Config 0).Subnet}}", string(open.ID)+nameNetwork))
	must(t, err)
	four := at.To4()
	four[3]++
	r, err := b.Exec(t.Context(), open, extensions.ExecRequest{Command: []string{"./escape", net.JoinHostPort(four.String(), port)}})
	must(t, err)
	if heard.Load() == 0 {
		t.Errorf("an open sandbox reached nothing, so the trial proves nothing: %s%s", r.Stdout, r.Stderr)
	}
	if strings.Contains(string(r.Stdout), "AF_") || strings.Contains(string(r.Stdout), "raw") {
		t.Errorf("an open sandbox has sockets past the network: %s", r.Stdout)
	}
}

// What the keeper of a closed network sends reaches the host, so nothing of an image may run in it.
func TestTheKeeperRunsNothingOfAnImage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.become(t, b, s.pair(t, "8080"))
	keeper := string(h.ID) + nameKeeper
	if got := docker(t, "inspect", "--format", "{{.Path}} {{.Args}} {{.Config.User}} {{.HostConfig.CapDrop}} {{.Config.Healthcheck.Test}} {{.HostConfig.Binds}}",
		keeper); got != keeperPath+" [] "+keeperUser+" [ALL] [NONE] []" {
		t.Errorf("it is %q", got)
	}
	pid := docker(t, "inspect", "--format", "{{.State.Pid}}", keeper)
	for file, want := range map[string]string{"ipv4/ip_forward": "0", "ipv4/conf/all/arp_ignore": "8"} {
		if got, err := exec.Command("nsenter", "--target", pid, "--net", "cat", "/proc/sys/net/"+file).Output(); strings.TrimSpace(string(got)) != want {
			t.Errorf("%s is %q, %v", file, got, err)
		}
	}
	look := "for p in /proc/[0-9]*; do ! grep -qx '" + keeperPath + "\\W*' $p/cmdline || { echo seen; readlink $p/exe $p/ns/net; ls $p/fd/; }; done 2>/dev/null"
	if r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Shell: look, User: keeperUser}); err != nil || string(r.Stdout) != "seen\n" {
		t.Errorf("its own user sees %q, %v", r.Stdout, err)
	}
	docker(t, "kill", keeper)
	o, err := b.Status(t.Context(), []extensions.Handle{h})
	if must(t, err); o[0].Phase != extensions.PhaseFailed || !strings.Contains(o[0].Reason, "network is down") {
		t.Errorf("without it: %+v", o)
	}
}

func TestServicesListenOnTheSamePort(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	for _, network := range []string{extensions.NetworkDeny, extensions.NetworkAllow} {
		h := s.become(t, b, s.pair(t, "8080", exttest.With(func(s *extensions.Spec) { s.Network.Default = network })))
		for _, from := range []string{"", "web", "db"} {
			const ask = "hostname; for name in web db database; do nc -w 5 $name 8080 </dev/null; done"
			want := cmp.Or(map[string]string{"": "agent", "db": "database"}[from], from) + "\nweb\ndatabase\ndatabase"
			if got := inside(t, b, h, from, ask); got != want {
				t.Errorf("%s: %q hears %q", network, from, got)
			}
		}
		for service, want := range map[string]string{"web": "web\n", "db": "database\n"} {
			c, err := b.Dial(t.Context(), h, service, 8080)
			must(t, err)
			got, _ := io.ReadAll(c)
			_ = c.Close()
			if string(got) != want {
				t.Errorf("%s: the port of %s says %q", network, service, got)
			}
		}
		if _, err := b.Dial(t.Context(), h, "", 8080); !extensions.IsKind(err, extensions.KindUnavailable) {
			t.Errorf("%s: nothing listens in the agent: %v", network, err)
		}
	}
}

func TestProgramsAreOfEachArchitecture(t *testing.T) {
	t.Parallel()
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		for what, write := range map[string]func(string) ([]byte, error){"the keeper": idleProgram, "a peer": sleeper(time.Minute),
			"a trial": newTrial(netip.MustParseAddr("10.214.0.3"), nil).program} {
			program, err := write(arch)
			must(t, err)
			f, err := elf.NewFile(bytes.NewReader(program))
			must(t, err)
			p := f.Progs[0]
			if f.Machine != machine || f.Type != elf.ET_EXEC || f.Entry%4 != 0 || p.Filesz != uint64(len(program)) || f.Progs[1].Memsz < 8 {
				t.Errorf("%s on %s: %+v", what, arch, f.FileHeader)
			}
		}
	}
	if _, err := idleProgram("riscv64"); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("an architecture that nobody tried: %v", err)
	}
}
