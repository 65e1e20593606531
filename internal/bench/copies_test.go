package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/composessh"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// BenchmarkComposeCopies times a snapshot and a fork of a sandbox on a host over SSH, whose workspace is 200 MiB,
// beside `docker commit` and `cp` of the same container and workspace, for the fork with `docker run` of them. The
// floor pauses its container too; it proves no digest.
func BenchmarkComposeCopies(b *testing.B) {
	hosttest.Docker(b)
	s := newCopySide(b)
	h, err := s.make(extensions.Handle{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.end(h)
	if _, err := s.backend.Exec(b.Context(), h, extensions.ExecRequest{
		Shell: "for i in $(seq 200); do head -c 1048576 /dev/urandom >f$i; done"}); err != nil {
		b.Fatal(err)
	}
	container, err := exec.Command("docker", "ps", "--quiet", "--filter", "label="+extensions.LabelID+"="+string(h.ID)).Output()
	if err != nil {
		b.Fatal(err)
	}
	to := filepath.Join(b.TempDir(), "copy")
	name := fmt.Sprintf("sandboxer-bench-%d", os.Getpid())
	floor := func(more string) func(int) error {
		return func(int) error {
			script := "docker commit " + strings.TrimSpace(string(container)) + " " + name + " && cp -a " +
				filepath.Join(s.root, string(h.ID), "workspace") + " " + to + more
			out, err := exec.CommandContext(b.Context(), "sh", "-c", script+"; rm -rf "+to+"; docker image rm "+name).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}
	}
	for _, kind := range []extensions.SnapshotKind{extensions.SnapshotWorkspace, extensions.SnapshotFilesystem} {
		b.Run("snapshot-"+string(kind), func(b *testing.B) {
			beside(b, floor(""), func(int) error { return s.keepAndDelete(h, kind) }, 1)
		})
	}
	b.Run("fork", func(b *testing.B) {
		run := " && docker run --detach --name " + name + " --volume " + to + ":/workspace " + name + " sleep 600; docker rm --force " + name
		beside(b, floor(run), func(int) error {
			fork, err := s.make(h)
			s.end(fork)
			return err
		}, 1)
	})
}

// copySide makes sandboxes on a host over SSH.
type copySide struct {
	b           *testing.B
	image, root string
	backend     *composessh.Backend
}

func newCopySide(b *testing.B) *copySide {
	b.Helper()
	server := hosttest.SSHD(b)
	host := server.Host()
	s := &copySide{b: b, image: hosttest.Image(b), root: filepath.Join(server.HomeDir, "boxes")}
	opened, err := composessh.New().Open(b.Context(), extensions.Config{Binding: "ext.compose-ssh", Account: "bench/copies", Host: &host,
		StateDir: b.TempDir(), Values: map[string]any{"root": s.root}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = opened.Close() })
	s.backend = opened.(*composessh.Backend)
	return s
}

func (s *copySide) make(from extensions.Handle) (extensions.Handle, error) {
	spec := exttest.Spec(s.b, extensions.Config{Account: "bench/copies"}, exttest.With(func(spec *extensions.Spec) {
		spec.Image, spec.FromSandbox, spec.Source = &extensions.Image{Pull: s.image}, from.ID, from
	}))
	h, _, err := s.backend.Provision(s.b.Context(), spec)
	return h, err
}

func (s *copySide) end(h extensions.Handle) {
	if h.IsZero() {
		return
	}
	if _, err := s.backend.Teardown(context.Background(), h); err != nil {
		s.b.Error(err)
	}
}

func (s *copySide) keepAndDelete(h extensions.Handle, kind extensions.SnapshotKind) error {
	id, err := extensions.NewSnapshotID(nil)
	if err != nil {
		return err
	}
	k, err := s.backend.Snapshot(s.b.Context(), h, extensions.SnapshotSpec{ID: id, Kind: kind})
	if err != nil {
		return err
	}
	return s.backend.DeleteSnapshot(s.b.Context(), k.Handle)
}
