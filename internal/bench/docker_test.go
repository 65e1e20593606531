package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/docker"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// BenchmarkDocker times ext.docker beside Docker's own command line in one run: ten containers created and
// destroyed at once, one command after another in one of them, and a snapshot and a clone of one with 200 MB in its
// workspace. Each prints its ratio to the floor.
func BenchmarkDocker(b *testing.B) {
	hosttest.Docker(b)
	image := hosttest.Image(b)
	cfg := extensions.Config{Binding: "ext.docker", Account: "bench/docker", StateDir: b.TempDir()}
	opened, err := docker.New().Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = opened.Close() })
	ours := &dockerSide{b: b, cfg: cfg, image: image, backend: opened.(*docker.Backend)}
	b.Run("create-and-destroy-10", func(b *testing.B) {
		beside(b, func(i int) error { return runAndRemove(b.Context(), image, i) }, func(int) error { return ours.makeAndEnd() }, atOnce)
	})
	b.Run("exec", func(b *testing.B) {
		h, id := ours.one(b)
		beside(b, func(int) error { return run(b.Context(), "exec", id, "true") },
			func(int) error {
				_, err := ours.backend.Exec(b.Context(), h, extensions.ExecRequest{Command: []string{"true"}})
				return err
			}, 1)
	})
	b.Run("snapshot-200MB", func(b *testing.B) {
		h, id := ours.one(b)
		ours.fill(b, h)
		beside(b, func(int) error { return commitAndCopy(b.Context(), id, b.TempDir()) }, func(int) error { return ours.snapshot(h) }, 1)
	})
	b.Run("clone-200MB", func(b *testing.B) {
		h, id := ours.one(b)
		ours.fill(b, h)
		beside(b, func(int) error { return commitAndRun(b.Context(), id) }, func(int) error { return ours.clone(h) }, 1)
	})
}

// run is one command of Docker's.
func run(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("docker %v: %w: %s", args, err, out)
	}
	return nil
}

const (
	workDir   = "/workspace"
	committed = "sandboxer-bench:committed"
)

// commitAndCopy keeps a container as an image, and its workspace as files.
func commitAndCopy(ctx context.Context, id, dir string) error {
	return errors.Join(run(ctx, "commit", id, committed), run(ctx, "cp", id+":"+workDir, dir), run(ctx, "rmi", committed), os.RemoveAll(dir))
}

func commitAndRun(ctx context.Context, id string) error {
	return errors.Join(run(ctx, "commit", id, committed), runAndRemove(ctx, committed, 0), run(ctx, "rmi", committed))
}

// beside alternates n of the floor's operations at once with n of ours.
func beside(b *testing.B, floor, ours func(i int) error, n int) {
	b.Helper()
	var took [2]time.Duration
	for b.Loop() {
		for side, do := range []func(int) error{floor, ours} {
			begun := time.Now()
			var all errgroup.Group
			for i := range n {
				all.Go(func() error { return do(i) })
			}
			if err := all.Wait(); err != nil {
				b.Fatal(err)
			}
			took[side] += time.Since(begun)
		}
	}
	b.ReportMetric(float64(took[0].Milliseconds())/float64(b.N), "ms-floor/op")
	b.ReportMetric(float64(took[1].Milliseconds())/float64(b.N), "ms-ours/op")
	b.ReportMetric(float64((took[1]-took[0]).Milliseconds())/float64(b.N), "ms-beyond/op")
	b.ReportMetric(float64(took[1])/float64(took[0]), "x-floor")
}

func runAndRemove(ctx context.Context, image string, i int) error {
	name := fmt.Sprintf("sandboxer-bench-%d", i)
	err := exec.CommandContext(ctx, "docker", "run", "--detach", "--name", name, image, "sleep", "600").Run()
	return errors.Join(err, exec.CommandContext(ctx, "docker", "rm", "--force", name).Run())
}

type dockerSide struct {
	b       *testing.B
	cfg     extensions.Config
	image   string
	backend *docker.Backend
}

func (s *dockerSide) make(opts ...exttest.Option) (extensions.Handle, error) {
	opts = append(opts, exttest.With(func(spec *extensions.Spec) { spec.Image = &extensions.Image{Pull: s.image} }))
	h, _, err := s.backend.Provision(s.b.Context(), exttest.Spec(s.b, s.cfg, opts...))
	return h, err
}

func (s *dockerSide) makeAndEnd(opts ...exttest.Option) error {
	h, err := s.make(opts...)
	if err != nil {
		return err
	}
	_, err = s.backend.Teardown(s.b.Context(), h)
	return err
}

// one makes a sandbox for a benchmark, and returns the id of its container too.
func (s *dockerSide) one(b *testing.B) (extensions.Handle, string) {
	b.Helper()
	h, err := s.make(exttest.WithWorkspace(extensions.AccessRW, nil))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = s.backend.Teardown(context.Background(), h) })
	id, err := exec.Command("docker", "ps", "--quiet", "--filter", "label="+extensions.LabelID+"="+string(h.ID)).Output()
	if err != nil || len(id) < 12 {
		b.Fatal(err, string(id))
	}
	return h, string(id[:12])
}

// fill puts 200 MB that cannot be compressed into a sandbox's workspace.
func (s *dockerSide) fill(b *testing.B, h extensions.Handle) {
	b.Helper()
	r, err := s.backend.Exec(b.Context(), h, extensions.ExecRequest{
		Shell: "cd " + workDir + " && dd if=/dev/urandom of=data bs=1000000 count=200"})
	if err != nil || r.ExitCode != 0 {
		b.Fatalf("%v: %s", err, r.Stderr)
	}
}

func (s *dockerSide) snapshot(h extensions.Handle) error {
	id, err := extensions.NewSnapshotID(nil)
	if err != nil {
		return err
	}
	made, err := s.backend.Snapshot(s.b.Context(), h, extensions.SnapshotSpec{ID: id, Account: s.cfg.Account, CreatedAt: time.Now()})
	if err != nil {
		return err
	}
	return s.backend.DeleteSnapshot(s.b.Context(), made.Handle)
}

func (s *dockerSide) clone(of extensions.Handle) error {
	return s.makeAndEnd(exttest.WithWorkspace(extensions.AccessRW, nil), exttest.With(func(spec *extensions.Spec) {
		spec.FromSandbox, spec.Source, spec.Workspace.Source = of.ID, of, nil
	}))
}
