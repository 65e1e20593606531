package exttest

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
)

// metered is what the stub vendor's backend can do.
type metered interface {
	extensions.Backend
	extensions.Execer
	extensions.LogStreamer
	extensions.FileTransfer
	extensions.Snapshotter
	extensions.Extender
	extensions.UsageReader
	extensions.CapacityReader
	extensions.Estimator
	extensions.GenerationSetter
}

// whole is the stub vendor with the powers it lacks added in memory, so that
// every check of the suite has something to run against. One value is the
// same place for all who open it.
type whole struct {
	extensions.Extension
	mu     sync.Mutex
	paused map[extensions.ID]bool
	// What mutants remember across backends.
	made      map[string]extensions.ID // by ref
	torn      map[extensions.ID]bool
	snapshots map[string][]extensions.SnapshotHandle // by sandbox
	secrets   map[string]extensions.Secret
	seen      map[string]bool
	busy      sync.WaitGroup
}

func newWhole() *whole {
	return &whole{Extension: saasstub.New(), paused: map[extensions.ID]bool{}, made: map[string]extensions.ID{}, torn: map[extensions.ID]bool{},
		snapshots: map[string][]extensions.SnapshotHandle{}, secrets: map[string]extensions.Secret{}, seen: map[string]bool{}}
}

func (w *whole) Describe() extensions.Descriptor {
	d := w.Extension.Describe()
	d.Powers = append(d.Powers, extensions.PowerPorts, extensions.PowerFork, extensions.PowerPause, extensions.PowerProbe, extensions.PowerPrepareImage)
	d.Capabilities.PauseResume = true
	return d
}

func (w *whole) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	b, err := w.Extension.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &wholeBackend{metered: b.(metered), w: w}, nil
}

type wholeBackend struct {
	metered
	w *whole
}

// alive is KindNotFound for what does not exist.
func (b *wholeBackend) alive(ctx context.Context, op string, h extensions.Handle) error {
	_, err := b.metered.Usage(ctx, h)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return &extensions.Error{Kind: extensions.KindNotFound, Op: op, ID: h.ID}
	}
	return err
}

func (b *wholeBackend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	from := spec.FromSandbox
	spec.FromSandbox = ""
	h, o, err := b.metered.Provision(ctx, spec)
	if err != nil || from == "" {
		return h, o, err
	}
	source, err := b.metered.Find(ctx, from)
	if err != nil {
		return h, o, err
	}
	var buf bytes.Buffer
	if err := b.metered.Download(ctx, source, "", &buf); err != nil {
		return h, o, err
	}
	return h, o, b.metered.Upload(ctx, h, "", &buf)
}

func (b *wholeBackend) CanFork(ctx context.Context, h extensions.Handle) error {
	return b.alive(ctx, "fork", h)
}

func (b *wholeBackend) Status(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	all, err := b.metered.Status(ctx, handles)
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	for i := range all {
		if b.w.paused[all[i].ID] && all[i].Phase == extensions.PhaseReady {
			all[i].Phase = extensions.PhasePaused
		}
	}
	return all, err
}

func (b *wholeBackend) Pause(ctx context.Context, h extensions.Handle) error {
	return b.setPaused(ctx, h, true)
}

func (b *wholeBackend) Resume(ctx context.Context, h extensions.Handle) error {
	return b.setPaused(ctx, h, false)
}

func (b *wholeBackend) setPaused(ctx context.Context, h extensions.Handle, paused bool) error {
	if err := b.alive(ctx, "pause", h); err != nil {
		return err
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.w.paused[h.ID] = paused
	return nil
}

func (b *wholeBackend) Dial(ctx context.Context, h extensions.Handle, _ string, _ int) (net.Conn, error) {
	if err := b.alive(ctx, "dial", h); err != nil {
		return nil, err
	}
	here, there := net.Pipe()
	b.w.busy.Go(func() {
		_, _ = io.Copy(there, there)
		_ = there.Close()
	})
	return here, nil
}

func (b *wholeBackend) Probe(ctx context.Context) (extensions.HostFacts, []extensions.Observation, error) {
	all, err := b.Status(ctx, nil)
	return extensions.HostFacts{OS: "linux", Arch: "amd64", CPUs: 2, MemoryMB: 1024, Isolation: []extensions.Isolation{extensions.IsolationContainer}}, all, err
}

func (b *wholeBackend) PrepareImage(_ context.Context, spec extensions.Spec) (string, error) {
	return "sha256:" + spec.Hash(), nil
}
