package hosttest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

var daemon = sync.OnceValue(func() error { return answers("docker") })

// answers returns nil if a program is Docker's command line, its daemon answers and Compose is present.
func answers(program string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, args := range [][]string{{"--version"}, {"version", "--format", "{{.Server.Version}}"}, {"compose", "version"}} {
		out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("docker %s: %w: %s", args[0], err, bytes.TrimSpace(out))
		}
		if args[0] == "--version" && !bytes.Contains(out, []byte("Docker version ")) {
			return fmt.Errorf("docker is another program, which says %q", bytes.TrimSpace(out))
		}
	}
	return nil
}

// Docker skips the test if no Docker daemon answers, Compose is missing, or docker is podman's, whose
// networks and rules differ. Under SANDBOXER_NO_SKIP=1 it fails the test.
func Docker(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts nothing in Docker")
	}
	if err := daemon(); err != nil {
		skip(t, "Docker with Compose: %v", err)
	}
}

// docker runs the command line and returns what it printed.
func docker(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(out)), err
}

var image = struct {
	sync.Mutex
	users int
	name  string
}{}

// Image returns the name of a small image: busybox with its applets (sh, nc, httpd, wget, ping …) and the
// users root, sandbox (1000) and nobody. It comes from no registry. The tests of a process share it, and it
// is removed after the last of them (see Main).
func Image(t testing.TB) string {
	t.Helper()
	Docker(t)
	name, err := acquireImage()
	if err != nil {
		skip(t, "%v", err)
	}
	t.Cleanup(func() {
		if err := releaseImage(); err != nil {
			t.Errorf("hosttest: the image cannot be removed; a container left behind uses it: %v", err)
		}
	})
	return name
}

// Main runs a package's tests with one Image for all of them, and returns the code for os.Exit.
func Main(m *testing.M) int {
	image.Lock()
	image.users++
	image.Unlock()
	code := m.Run()
	if err := releaseImage(); err != nil {
		fmt.Fprintln(os.Stderr, "hosttest:", err)
		return max(code, 1)
	}
	return code
}

func acquireImage() (string, error) {
	image.Lock()
	defer image.Unlock()
	if image.name == "" {
		name := "sandboxer-test-" + strings.ToLower(rand.Text()[:12]) + ":latest"
		if err := importImage(name); err != nil {
			return "", err
		}
		image.name = name
	}
	image.users++
	return image.name, nil
}

func releaseImage() error {
	image.Lock()
	defer image.Unlock()
	image.users--
	if image.users > 0 || image.name == "" {
		return nil
	}
	name := image.name
	image.name = ""
	_, err := docker("image", "rm", name)
	return err
}

func importImage(name string) error {
	files, err := imageFiles()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", "import",
		"--change", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"--change", "LABEL sandboxer.test="+name, "--change", `CMD ["sh"]`, "-", name)
	cmd.Stdin = bytes.NewReader(files)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("docker import: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// imageFiles returns the image's root file system as tar.
func imageFiles() ([]byte, error) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return nil, fmt.Errorf("no busybox: install busybox-static")
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(program, []byte("/ld-linux")) || bytes.Contains(program, []byte("/ld-musl")) {
		return nil, fmt.Errorf("%s is not static: install busybox-static", busybox)
	}
	list, err := exec.CommandContext(context.Background(), busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("busybox --list: %w", err)
	}
	var b bytes.Buffer
	w := rootFS{tar.NewWriter(&b)}
	w.dirs(0o755, "bin", "dev", "etc", "home", "proc", "sys", "usr", "var", "var/www")
	w.dirs(0o700, "root")
	w.dirs(0o1777, "tmp", "run")
	w.file("bin/busybox", 0o755, program)
	for _, applet := range strings.Fields(string(list)) {
		if applet != "busybox" && !strings.Contains(applet, "/") {
			w.link("bin/"+applet, "busybox")
		}
	}
	w.link("sbin", "bin")
	w.link("usr/bin", "../bin")
	w.link("usr/sbin", "../bin")
	w.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\nsandbox:x:1000:1000::/home/sandbox:/bin/sh\n"+
		"nobody:x:65534:65534::/:/bin/sh\n"))
	w.file("etc/group", 0o644, []byte("root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"))
	w.put(&tar.Header{Typeflag: tar.TypeDir, Name: "home/sandbox/", Mode: 0o755, Uid: 1000, Gid: 1000}, nil)
	return b.Bytes(), w.Close()
}

// rootFS writes entries; Close reports an error again.
type rootFS struct{ *tar.Writer }

func (w rootFS) put(h *tar.Header, data []byte) {
	h.Size = int64(len(data))
	if w.WriteHeader(h) == nil {
		_, _ = w.Write(data)
	}
}

func (w rootFS) dirs(mode int64, names ...string) {
	for _, n := range names {
		w.put(&tar.Header{Typeflag: tar.TypeDir, Name: n + "/", Mode: mode}, nil)
	}
}

func (w rootFS) file(name string, mode int64, data []byte) {
	w.put(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, data)
}

func (w rootFS) link(name, target string) {
	w.put(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}
