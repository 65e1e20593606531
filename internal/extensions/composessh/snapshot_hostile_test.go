package composessh

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// snapshotFile is a snapshot's file of these parts, whose list has the lines of names.
func snapshotFile(kind string, names []string, parts ...[]byte) []byte {
	list := "sandboxer-snapshot 1 " + kind + "\n"
	var data []byte
	for i, p := range parts {
		word, rest, _ := strings.Cut(names[i], " ")
		list += strings.TrimSpace(fmt.Sprintf("%s %d %s", word, len(p), rest)) + "\n"
		data = append(data, p...)
	}
	return append(data, fmt.Sprintf("%ssandboxer-snapshot %012d\n", list, len(list))...)
}

// listing reads the files of a snapshot with volumes, by the names of those.
func listing(t testing.TB, s *site, k extensions.Snapshot) map[string]string {
	t.Helper()
	data, err := os.ReadFile(s.root + "/snapshots/" + k.Handle.ID + "/data")
	must(t, err)
	length, err := strconv.Atoi(strings.TrimSpace(string(data[len(data)-13:])))
	must(t, err)
	files := map[string]string{}
	for i, line := range strings.Split(strings.TrimSpace(string(data[len(data)-32-length:len(data)-32])), "\n") {
		words := strings.Fields(line)
		if i == 0 || words[0] != "workspace" && words[0] != "volume" {
			continue
		}
		size, err := strconv.Atoi(words[1])
		must(t, err)
		for r := tar.NewReader(bytes.NewReader(data[:size])); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			text, err := io.ReadAll(r)
			must(t, err)
			files[strings.Join(words[2:], " ")+strings.TrimPrefix(h.Name, ".")] = strings.TrimSpace(string(text))
		}
		data = data[size:]
	}
	return files
}

func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = 5
		}
		h.Mode = 0o777
		must(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := io.WriteString(w, "evil\n")
			must(t, err)
		}
	}
	must(t, w.Close())
	return b.Bytes()
}

// Another host may send anything. What no snapshot has is refused, nothing is written beside the sandbox, and
// nothing stays.
func TestAHostileSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	first := s.provision(t, b, s.spec(t)) // what the first of a host makes for all
	before := s.residue(t)
	reg := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	link := func(kind byte, name, to string) tar.Header {
		return tar.Header{Typeflag: kind, Name: name, Linkname: to}
	}
	escape := s.server.HomeDir + "/escaped"
	archives := map[string][]byte{
		"an absolute name":      tarOf(t, reg(escape)),
		"a name that climbs":    tarOf(t, reg("./../../../../../../../../"+escape)),
		"climbs in the middle":  tarOf(t, reg("a/../../"+escape)),
		"a device":              tarOf(t, tar.Header{Typeflag: tar.TypeBlock, Name: "./disk", Devmajor: 8}),
		"another device":        tarOf(t, tar.Header{Typeflag: tar.TypeChar, Name: "./mem", Devmajor: 1, Devminor: 1}),
		"a hard link out":       tarOf(t, link(tar.TypeLink, "./passwd", "/etc/passwd")),
		"a hard link that hops": tarOf(t, link(tar.TypeLink, "./passwd", "../../../../etc/passwd")),
		"through a link":        tarOf(t, link(tar.TypeSymlink, "./out", s.server.HomeDir), reg("./out/escaped")),
		"no tar":                []byte(strings.Repeat("x", 4096)),
		"a cut tar":             tarOf(t, reg("./f"))[:700],
	}
	files := map[string][]byte{
		"nothing": nil, "no list": []byte("x"), "only a list": snapshotFile("workspace", nil),
		"a long list":        append(bytes.Repeat([]byte("y"), 70000), fmt.Sprintf("sandboxer-snapshot %012d\n", 70000)...),
		"two workspaces":     snapshotFile("workspace", []string{"workspace", "workspace"}, tarOf(t), tarOf(t)),
		"no workspace":       snapshotFile("workspace", []string{"volume data"}, tarOf(t)),
		"another's volume":   snapshotFile("workspace", []string{"workspace", "volume ../x"}, tarOf(t), tarOf(t)),
		"a mount option":     snapshotFile("workspace", []string{"workspace", "volume x,dst=/"}, tarOf(t), tarOf(t)),
		"another kind's":     snapshotFile("workspace", []string{"workspace", "files agent"}, tarOf(t), tarOf(t)),
		"another kind":       snapshotFile("filesystem", []string{"workspace"}, tarOf(t)),
		"an odd part":        snapshotFile("workspace", []string{"workspace", "$(touch " + escape + ")"}, tarOf(t), tarOf(t)),
		"more than there is": []byte("workspace\nsandboxer-snapshot 1 workspace\nworkspace 99999999999\nsandboxer-snapshot 000000000055\n"),
	}
	for what, archive := range archives {
		files[what] = snapshotFile("workspace", []string{"workspace"}, archive)
	}
	for what, file := range files {
		ref := &extensions.SnapshotRef{ID: newSnapshotID(t), Source: other{bytes.NewReader(file), extensions.SnapshotWorkspace, digestOf(file)}}
		spec := s.spec(t, exttest.With(func(sp *extensions.Spec) { sp.FromSnapshot = ref }))
		h, _, err := b.Provision(t.Context(), spec)
		if !h.IsZero() {
			_, terr := b.Teardown(t.Context(), h)
			must(t, terr)
		}
		if what == "through a link" && err == nil { // the archiver may put it inside
			continue
		}
		if !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Lstat(escape); err == nil {
			t.Fatalf("%s: it wrote beside the sandbox", what)
		}
	}
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if o := s.observe(t, b, first); o.Phase != extensions.PhaseReady {
		t.Errorf("the other sandbox is %s: %s", o.Phase, o.Reason)
	}
}

// The engine follows a link in the place of what a stack binds, as root of the host.
func TestALinkInASnapshotIsNotBound(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	const plain, bound = "services: {web: {image: IMAGE, command: [sleep, '3600']}}\n",
		"services: {web: {image: IMAGE, command: [sleep, '3600'], volumes: ['./made/there:/mnt']}}\n"
	h := s.provision(t, b, s.stack(t, plain))
	in(t, b, h, "web", "ln -s /etc /workspace/made")
	k := s.keep(t, b, h, "")
	spec := s.stack(t, bound, from(k))
	refused, _, err := b.Provision(t.Context(), spec)
	if !refused.IsZero() {
		s.tearDownAtEnd(t, spec.ID)
	}
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a bind through a link: %v", err)
	}
	in(t, b, h, "web", "rm /workspace/made")
	r := s.provision(t, b, s.stack(t, bound, from(s.keep(t, b, h, ""))))
	if got := in(t, b, r, "web", "touch /mnt/f && ls /workspace/made/there"); got != "f" {
		t.Errorf("a folder that the stack binds and the snapshot lacks has %q", got)
	}
}

// A device that somebody made inside cannot be kept, which is told at once and not at a restore.
func TestADeviceInTheWorkspaceIsToldAtTheSnapshot(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	in(t, b, h, "", "mkdir d && mknod d/null c 1 3")
	id := newSnapshotID(t)
	_, err := b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id})
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "./d/null") {
		t.Errorf("with a device: %v", err)
	}
	if _, err := b.FindSnapshot(t.Context(), id); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("the refused one: %v", err)
	}
	if o := s.observe(t, b, h); o.Phase != extensions.PhaseReady || o.Reason != "" {
		t.Errorf("it is %s: %s", o.Phase, o.Reason)
	}
}
