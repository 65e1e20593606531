package conformance

import (
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
	extensions.URLGiver
	extensions.Snapshotter
	extensions.SnapshotReader
	extensions.Forker
	extensions.Pauser
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
	mu sync.Mutex
	// What mutants remember across backends.
	made      map[string]extensions.ID // by ref
	torn      map[extensions.ID]bool
	snapshots map[string][]extensions.SnapshotHandle // by sandbox
	sizes     map[string]int64                       // of snapshots
	secrets   map[string]extensions.Secret
	forks     map[extensions.ID][]extensions.Handle // by source
	seen      map[string]bool
	busy      sync.WaitGroup
}

// added are the powers that the stub vendor lacks.
var added = []extensions.Power{extensions.PowerPorts, extensions.PowerProbe, extensions.PowerPrepareImage}

func newWhole() *whole {
	return &whole{Extension: saasstub.New(), made: map[string]extensions.ID{},
		torn:      map[extensions.ID]bool{},
		snapshots: map[string][]extensions.SnapshotHandle{}, secrets: map[string]extensions.Secret{}, seen: map[string]bool{},
		sizes: map[string]int64{}, forks: map[extensions.ID][]extensions.Handle{}}
}

func (w *whole) Describe() extensions.Descriptor {
	d := w.Extension.Describe()
	d.Powers = append(d.Powers, added...)
	d.Places = []extensions.Place{extensions.PlaceMachine, extensions.PlaceHost}
	key := d.Credentials[0].Name
	d.Credentials = append(d.Credentials, extensions.CredentialField{Name: "name", Doc: "With password, in place of the key."},
		extensions.CredentialField{Name: "password", Doc: "Of name."})
	d.CredentialsAnyOf = [][]string{{key}, {"name", "password"}}
	return d
}

// Declare takes away what the stub vendor's plans do, and nothing of what whole adds.
func (w *whole) Declare(values map[string]any) (extensions.Declaration, error) {
	d, err := w.Extension.(extensions.Declarer).Declare(values)
	if d.Powers != nil {
		d.Powers = append(d.Powers, added...)
	}
	return d, err
}

func (w *whole) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	if c := cfg.Credentials; !c["name"].IsZero() && !c["password"].IsZero() {
		cfg.Credentials = map[string]extensions.Secret{w.Extension.Describe().Credentials[0].Name: c["password"]}
	}
	b, err := w.Extension.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &wholeBackend{metered: b.(metered), w: w, cfg: cfg}, nil
}

type wholeBackend struct {
	metered
	w   *whole
	cfg extensions.Config
}

// alive is KindNotFound for what does not exist.
func (b *wholeBackend) alive(ctx context.Context, op string, h extensions.Handle) error {
	_, err := b.metered.Usage(ctx, h)
	if extensions.IsKind(err, extensions.KindNotFound) {
		return &extensions.Error{Kind: extensions.KindNotFound, Op: op, ID: h.ID}
	}
	return err
}

func (b *wholeBackend) Dial(ctx context.Context, h extensions.Handle, _ string, _ int) (net.Conn, error) {
	if err := b.alive(ctx, "dial", h); err != nil {
		return nil, err
	}
	if all, err := b.Status(ctx, []extensions.Handle{h}); err == nil && all[0].Phase == extensions.PhasePaused {
		return nil, extensions.Paused(h.ID)
	}
	here, there := net.Pipe()
	b.w.busy.Go(func() {
		_, _ = io.Copy(there, there)
		_ = there.Close()
	})
	return &used{Conn: here, unused: sync.OnceFunc(place(b.cfg).Use(ctx, h.Ref))}, nil
}

// used is a connection that keeps a sandbox from being idle.
type used struct {
	net.Conn
	unused func()
}

func (u *used) Close() error {
	u.unused()
	return u.Conn.Close()
}

func (b *wholeBackend) Probe(ctx context.Context) (extensions.Facts, []extensions.Observation, error) {
	all, err := b.Status(ctx, nil)
	cpus := int64(2)
	return extensions.Facts{Machine: &extensions.HostFacts{OS: "linux", Arch: "amd64", CPUs: cpus, MemoryMB: 1024,
		Isolation: []extensions.Isolation{extensions.IsolationContainer}},
		Narrowing: extensions.Narrowing{OS: []string{"linux"}, Arch: []string{"amd64"}, MaxVCPU: &cpus}, Powers: b.w.Describe().Powers}, all, err
}

func (b *wholeBackend) PrepareImage(ctx context.Context, spec extensions.Spec) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", extensions.Errorf(extensions.KindInterrupted, "nothing was prepared: %w", err)
	}
	return "sha256:" + spec.ImageKey(), nil
}
