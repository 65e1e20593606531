package composessh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// keep takes a snapshot that is deleted when the test ends.
func (s *site) keep(t testing.TB, b *Backend, h extensions.Handle, kind extensions.SnapshotKind) extensions.Snapshot {
	t.Helper()
	id := newSnapshotID(t)
	s.deleteAtEnd(t, id)
	k, err := b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id, Name: "kept", Account: s.config.Account, Kind: kind, CreatedAt: time.Now()})
	must(t, err)
	return k
}

func (s *site) deleteAtEnd(t testing.TB, id string) {
	t.Cleanup(func() {
		s.gate.open()
		b, err := New().Open(context.Background(), s.config)
		must(t, err)
		defer func() { must(t, b.Close()) }()
		k, err := b.(*Backend).FindSnapshot(context.Background(), id)
		if err == nil {
			err = b.(*Backend).DeleteSnapshot(context.Background(), k.Handle)
		}
		if err != nil && !extensions.IsKind(err, extensions.KindNotFound) {
			t.Errorf("removing %s after the test: %v", id, err)
		}
	})
}

func newSnapshotID(t testing.TB) string {
	t.Helper()
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	return id
}

func from(k extensions.Snapshot) exttest.Option {
	return exttest.With(func(sp *extensions.Spec) {
		sp.FromSnapshot = &extensions.SnapshotRef{ID: k.Handle.ID, Handle: k.Handle}
	})
}

func forkOf(h extensions.Handle) exttest.Option {
	return exttest.With(func(sp *extensions.Spec) { sp.FromSandbox, sp.Source, sp.Workspace.Source = h.ID, h, nil })
}

// in runs a script in a service.
func in(t testing.TB, b *Backend, h extensions.Handle, service, script string) string {
	t.Helper()
	r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Service: service, Shell: script})
	must(t, err)
	if r.ExitCode != 0 {
		t.Fatalf("%s: exit code %d: %s", script, r.ExitCode, r.Stderr)
	}
	return strings.TrimSpace(string(r.Stdout))
}

const keptStack = `
services:
  web:
    image: IMAGE
    command: [sh, -c, "sleep 3600"]
    hostname: front
    environment: {COLOUR: green}
    volumes: ["data:/data", "/nameless", "./page:/etc/page:ro"]
  db:
    image: IMAGE
    command: [sh, -c, "n=0; while :; do n=$$((n+1)); echo $$n >>/data/first; echo $$n >>/more/second; sleep 0.05; done"]
    volumes: ["data:/data", "more:/more"]
volumes: {data: {}, more: {}}
`

// What services wrote to the workspace and to named volumes is there again as it was at one moment, with owners,
// modes, links and odd names; what came later is not.
func TestASnapshotHoldsTheWorkspaceAndTheVolumes(t *testing.T) {
	t.Parallel()
	for login, site := range map[string]func(testing.TB) *site{"root": func(t testing.TB) *site { return newSite(t) }, "ordinary": siteOfAnOrdinaryUser} {
		t.Run(login, func(t *testing.T) {
			t.Parallel()
			holdsWorkspaceAndVolumes(t, site(t))
		})
	}
}

func holdsWorkspaceAndVolumes(t *testing.T, s *site) {
	b := s.open(t)
	h := s.provision(t, b, s.stack(t, keptStack))
	in(t, b, h, "web", `mkdir -p /data/d && echo deep >"/data/d/a
b" && ln /data/d/a* /data/hard && ln -s /etc/passwd /data/out && chown 1234:77 /data/hard && chmod 4750 /data/hard && mkfifo /data/pipe
		mkdir /workspace/.hidden && echo here >/workspace/.hidden/f && ln -s ../.. /workspace/up && rm /workspace/compose.yaml && mkdir -m 0700 /workspace/closed`)
	k := s.keep(t, b, h, "")
	in(t, b, h, "web", "rm -rf /data/d; echo later >/workspace/later; echo later >/data/later")
	r := s.provision(t, b, s.stack(t, keptStack, from(k)))
	got := in(t, b, r, "web", `stat -c "%a %u %g %h" /data/hard; readlink /data/out; test -p /data/pipe && echo pipe; cat /data/d/a*; cat /workspace/.hidden/f
		readlink /workspace/up; stat -c %a /workspace/closed; ls /workspace/later /workspace/compose.yaml /data/later 2>/dev/null; cat /etc/page`)
	if want := "4750 1234 77 2\n/etc/passwd\npipe\ndeep\nhere\n../..\n700\nhello"; got != want {
		t.Errorf("restored:\n%s\nwant:\n%s", got, want)
	}
	if k.SizeBytes < 10<<10 || k.Kind != extensions.SnapshotWorkspace || k.SandboxID != h.ID {
		t.Errorf("it is %+v", k)
	}
	for _, box := range []extensions.Handle{h, r} {
		if o := s.observe(t, b, box); o.Phase != extensions.PhaseReady {
			t.Errorf("%s is %s: %s", box.ID, o.Phase, o.Reason)
		}
	}
}

// Two files that a service writes one after the other, in two volumes, are of one moment, unless the snapshot is live.
func TestASnapshotIsOfOneMoment(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.stack(t, keptStack))
	k := s.keep(t, b, h, "")
	files := listing(t, s, k)
	first, second := strings.Count(files["data/first"], "\n"), strings.Count(files["more/second"], "\n")
	if second < 2 || first != second && first != second+1 {
		t.Errorf("the first has %d lines, the second %d", first, second)
	}
	began := in(t, b, h, "web", "tail -n 1 /data/first")
	live, err := b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: newSnapshotID(t), Live: true})
	must(t, err)
	s.deleteAtEnd(t, live.Handle.ID)
	if now := in(t, b, h, "web", "tail -n 1 /data/first"); now == began {
		t.Error("nothing ran during a live snapshot")
	}
}

// A paused sandbox can be kept, and stays paused.
func TestASnapshotOfAPausedStackLeavesItPaused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.stack(t, keptStack)
	h := s.provision(t, b, spec)
	_, err := b.Pause(t.Context(), h)
	must(t, err)
	s.keep(t, b, h, "")
	if o := s.observe(t, b, h); o.Phase != extensions.PhasePaused || o.Reason != "" {
		t.Errorf("it is %s: %s", o.Phase, o.Reason)
	}
	if o, err := b.Resume(t.Context(), h, spec.Deadline); err != nil || o.Phase != extensions.PhaseReady {
		t.Errorf("resumed it is %s: %v", o.Phase, err)
	}
}

// With the containers' own file systems, what was added, changed and removed there is so again, and volumes without a
// name; no secret is in it, in an image or in a record of docker; the images go with the last sandbox.
func TestASnapshotHoldsFileSystemsAndNoSecret(t *testing.T) {
	t.Parallel()
	const canary = "canary-3f6c0e"
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.stack(t, keptStack, exttest.WithSecret("TOKEN", canary)))
	if in(t, b, h, "web", "echo $TOKEN") != canary {
		t.Fatal("the canary is not inside")
	}
	in(t, b, h, "web", "echo own >/etc/own; rm /etc/group; chmod 600 /etc/passwd; echo anonymous >/nameless/f")
	k := s.keep(t, b, h, extensions.SnapshotFilesystem)
	var bytesOf bytes.Buffer
	must(t, b.ReadSnapshot(t.Context(), k.Handle, &bytesOf))
	if bytes.Contains(bytesOf.Bytes(), []byte(canary)) {
		t.Error("the secret is in the snapshot")
	}
	image := ""
	boxes := []extensions.Handle{s.provision(t, b, s.stack(t, keptStack, from(k))), s.provision(t, b, s.stack(t, keptStack, from(k)))}
	for _, r := range boxes {
		if got := in(t, b, r, "web", `cat /etc/own; ls /etc/group 2>/dev/null; stat -c %a /etc/passwd; cat /nameless/f; hostname; echo $COLOUR ${TOKEN-none}`); got !=
			"own\n600\nanonymous\nfront\ngreen none" {
			t.Errorf("restored: %s", got)
		}
		web := containerOf(t, r.ID, "web")
		image = docker(t, "inspect", "-f", "{{.Image}}", web)
		if all := docker(t, "inspect", web, image); strings.Contains(all, canary) {
			t.Error("the secret is in docker's records of what was restored")
		}
		if db := docker(t, "inspect", "-f", "{{.Config.Image}}", containerOf(t, r.ID, "db")); db != hosttest.Image(t) {
			t.Errorf("a service that changed nothing runs %s", db)
		}
	}
	for _, r := range append(boxes, h) {
		_, err := b.Teardown(t.Context(), r)
		must(t, err)
	}
	if left := docker(t, "image", "ls", "-aq", "--no-trunc"); strings.Contains(left, image) {
		t.Errorf("the image %s stays", image)
	}
}

// A stack that lacks what the snapshot holds is refused, and nothing stays.
func TestASnapshotIsNotRestoredIntoAnotherStack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.stack(t, keptStack))
	in(t, b, h, "web", "echo own >/etc/own")
	k, whole := s.keep(t, b, h, ""), s.keep(t, b, h, extensions.SnapshotFilesystem)
	before := s.residue(t)
	for what, c := range map[string]struct {
		of    extensions.Snapshot
		stack string
		says  string
	}{
		"a volume":          {k, strings.NewReplacer(`, "more:/more"`, "", ", more: {}", "").Replace(keptStack), "no volume more"},
		"a service":         {whole, strings.Replace(keptStack, "  web:\n", "  other:\n", 1), "no service web"},
		"a nameless volume": {whole, strings.Replace(keptStack, `"/nameless", `, "", 1), "/nameless"},
	} {
		spec := s.stack(t, c.stack, from(c.of), exttest.With(func(sp *extensions.Spec) {
			if what == "a service" {
				sp.Compose.Service = "other"
			}
		}))
		refused, _, err := b.Provision(t.Context(), spec)
		if !refused.IsZero() {
			s.tearDownAtEnd(t, spec.ID)
		}
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), c.says) || extensions.RemedyOf(err) == "" {
			t.Errorf("without %s: %v", what, err)
		}
	}
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Whatever was changed on the disk of the host is found by the digest.
func TestADamagedSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	k := s.keep(t, b, h, "")
	file := filepath.Join(s.root, "snapshots", k.Handle.ID, "data")
	content, err := os.ReadFile(file)
	must(t, err)
	content[600] ^= 1
	must(t, os.WriteFile(file, content, 0o600))
	s.edit(t, extensions.ID(filepath.Join("snapshots", k.Handle.ID)), "manifest", "digest", digestOf(content))
	spec := s.spec(t, from(k))
	refused, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "damaged") || !refused.IsZero() {
		t.Errorf("a record that was changed with its data: %v, handle %q", err, refused.Encode())
	}
}

// What took the place of a snapshot on the disk of the host may have no end, and is not read.
func TestWhatIsNoSnapshotIsNotRead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	for what, place := range map[string]func(file string) error{
		"a file with a hole": func(file string) error { return os.Truncate(file, 1<<40) },
		"a pipe":             func(file string) error { return errors.Join(os.Remove(file), exec.Command("mkfifo", file).Run()) },
		"a link":             func(file string) error { return errors.Join(os.Remove(file), os.Symlink("/dev/zero", file)) },
		"a folder":           func(file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) },
		"nothing":            os.Remove,
	} {
		k := s.keep(t, b, h, "")
		must(t, place(filepath.Join(s.root, "snapshots", k.Handle.ID, "data")))
		refused, _, err := b.Provision(t.Context(), s.spec(t, from(k)))
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "damaged") || !refused.IsZero() {
			t.Errorf("restored from %s: %v, handle %q", what, err, refused.Encode())
		}
		if err := b.ReadSnapshot(t.Context(), k.Handle, io.Discard); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("read from %s: %v", what, err)
		}
	}
}

// The instructions of the new sandbox take the place of those in the snapshot.
func TestARestoredWorkspaceHasTheNewInstructions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	told := func(text string) exttest.Option {
		return exttest.With(func(sp *extensions.Spec) { sp.Instructions = text })
	}
	h := s.provision(t, b, s.spec(t, told("old")))
	in(t, b, h, "", "cp .sandboxer/instructions.md copy; rm -rf .sandboxer; ln -s /etc .sandboxer")
	k := s.keep(t, b, h, "")
	r := s.provision(t, b, s.spec(t, told("new"), from(k)))
	if got := in(t, b, r, "", "cat copy .sandboxer/instructions.md; test -h .sandboxer || echo real"); got != "oldnewreal" {
		t.Errorf("it reads %q", got)
	}
	if _, err := os.Stat("/etc/instructions.md"); err == nil {
		t.Error("the host's /etc has the instructions")
	}
}

// other is a stream that another host's snapshot would be.
type other struct {
	io.Reader
	kind   extensions.SnapshotKind
	digest string
}

func (o other) Open(context.Context) (io.ReadCloser, error) { return io.NopCloser(o.Reader), nil }
func (o other) Digest() string                              { return o.digest }
func (o other) Kind() extensions.SnapshotKind               { return o.kind }

// A snapshot goes from one host to another in one pass through this process, and is a sandbox there.
func TestASnapshotMovesToAnotherHost(t *testing.T) {
	t.Parallel()
	one, two := newSite(t), newSite(t)
	b, there := one.open(t), two.open(t)
	h := one.provision(t, b, one.stack(t, keptStack))
	in(t, b, h, "web", "echo moved >/workspace/f; head -c 9000000 /dev/urandom >/data/big; sha256sum </data/big >/data/sum; echo own >/etc/own")
	for _, kind := range snapshots.Portable {
		k := one.keep(t, b, h, kind)
		r, w := io.Pipe()
		go func() { w.CloseWithError(b.ReadSnapshot(t.Context(), k.Handle, w)) }()
		ref := &extensions.SnapshotRef{ID: k.Handle.ID, Handle: k.Handle, Source: other{r, kind, k.Digest}}
		moved := two.provision(t, there, two.stack(t, keptStack, exttest.With(func(sp *extensions.Spec) { sp.FromSnapshot = ref })))
		got := in(t, there, moved, "web", "cat /workspace/f; sha256sum </data/big | cmp - /data/sum && cat /etc/own 2>/dev/null; true")
		if want := map[extensions.SnapshotKind]string{extensions.SnapshotWorkspace: "moved", extensions.SnapshotFilesystem: "moved\nown"}[kind]; got != want {
			t.Errorf("%s moved: %q, want %q", kind, got, want)
		}
	}
}
