package composessh

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// ordinaryUser is somebody of this machine who is not root and can log in.
func ordinaryUser(t testing.TB) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("the test logs in as somebody else, so it needs root")
	}
	text, err := os.ReadFile("/etc/passwd")
	must(t, err)
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) == 7 && f[2] != "0" && (strings.HasSuffix(f[6], "/bash") || strings.HasSuffix(f[6], "bin/sh")) {
			return f[0]
		}
	}
	t.Skip("nobody but root can log in here")
	return ""
}

// dockerFor gives a user a socket of docker's, as the docker group would, and
// Compose as a plugin. It returns what the login must export.
func dockerFor(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	for up := dir; up != "/tmp" && up != "/"; up = filepath.Dir(up) {
		must(t, os.Chmod(up, 0o755))
	}
	who, err := user.Lookup(name)
	must(t, err)
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	socket := filepath.Join(dir, "docker.sock")
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	must(t, err)
	must(t, os.Chown(socket, uid, gid))
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { pipeTo(c, "/var/run/docker.sock") })
		}
	})
	config := filepath.Join(dir, "config", "cli-plugins")
	must(t, os.MkdirAll(config, 0o755))
	for _, from := range []string{os.Getenv("HOME") + "/.docker/cli-plugins", "/usr/libexec/docker/cli-plugins", "/usr/lib/docker/cli-plugins",
		"/usr/local/lib/docker/cli-plugins"} {
		if out, err := exec.CommandContext(t.Context(), "cp", "-L", from+"/docker-compose", config).CombinedOutput(); err == nil {
			return "export DOCKER_HOST=unix://" + socket + " DOCKER_CONFIG=" + filepath.Dir(config)
		} else {
			t.Logf("%s: %s", from, out)
		}
	}
	t.Skip("no compose plugin to give to another user")
	return ""
}

func pipeTo(c net.Conn, socket string) {
	defer func() { _ = c.Close() }()
	d, err := (&net.Dialer{}).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return
	}
	defer func() { _ = d.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(d, c)
		_ = d.(*net.UnixConn).CloseWrite()
	}()
	_, _ = io.Copy(c, d)
	_ = c.(*net.UnixConn).CloseWrite()
	_ = c.Close()
	<-done
}

// siteOfAnOrdinaryUser is a host whose login is not root.
func siteOfAnOrdinaryUser(t testing.TB) *site {
	t.Helper()
	hosttest.Docker(t)
	name := ordinaryUser(t)
	export := dockerFor(t, name)
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	login := filepath.Join(dir, "login")
	must(t, os.WriteFile(login, []byte("#!/bin/sh\n"+export+"\nexec /bin/sh \"$@\"\n"), 0o755))
	// With PAM, sshd lets in whom it knows by a key although no password is set.
	return newSite(t, hosttest.WithUser(name), hosttest.WithShell(login), hosttest.WithConfig("UsePAM yes"))
}

// A login that is not root does all of it with the toolbox.
func TestALoginThatIsNotRootCanDoAll(t *testing.T) {
	t.Parallel()
	s := siteOfAnOrdinaryUser(t)
	b := s.open(t)
	h := s.several(t, b, "web")
	_, err := b.Exec(t.Context(), h, extensions.ExecRequest{Shell: "setsid sleep 50 & sleep 60", Timeout: 700_000_000})
	wantKind(t, "over its time", err, extensions.KindTimeout)
	if left := docker(t, "top", string(h.ID)+"-web-1"); strings.Contains(left, "sleep 50") || strings.Contains(left, "sleep 60") {
		t.Errorf("still there: %s", left)
	}
	checkFiles(t, b, h)
	checkPorts(t, s, b, h)
	checkCutLines(t, s, b, h)
	// Files that root made inside go with the sandbox.
	run(t, b, h, extensions.ExecRequest{Shell: "mkdir -p deep/er; touch deep/er/f; chmod 0 deep; ln -s /etc/passwd deep/l", User: "0"})
	box := filepath.Join(s.root, string(h.ID))
	if _, err := os.Stat(filepath.Join(box, "workspace/deep/er/f")); err != nil {
		t.Fatal(err)
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	if _, err := os.Lstat(box); !os.IsNotExist(err) {
		t.Errorf("the sandbox's folder is still there: %v", err)
	}
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Error(err)
	}
	if left := docker(t, "ps", "-aq", "--filter", "label=sandboxer.toolbox-for="+string(h.ID)); left != "" {
		t.Errorf("toolbox containers are left: %s", left)
	}
}

func TestTheToolboxRunsTheHostsPrograms(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	inShells(t, []string{"toolbox"}, `
mkdir -p "$root"
id=
toolbox_run -- sh -c 'id -u; cat /proc/net/dev | grep -c :; ls -A /root 2>/dev/null | wc -l; touch /usr/x 2>/dev/null && echo writable; echo "$0"' 'a b'
toolbox_release
`, "0\n1\n0\na b")
}
