package local

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// probeLife bounds the sandbox that a probe makes, should we die over it.
const probeLife = 20 * time.Second

// Probe implements extensions.HostProber. The isolation levels are proved by
// making a sandbox of each and running a program in it.
func (b *Backend) Probe(ctx context.Context) (extensions.HostFacts, []extensions.Observation, error) {
	if err := ctx.Err(); err != nil {
		return extensions.HostFacts{}, nil, failed("probe", "", err)
	}
	f := extensions.HostFacts{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: int64(runtime.NumCPU()), MemoryMB: memoryMB(),
		FreeDisk: freeDiskMB(b.settings.root)}
	if kvm, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err == nil {
		f.KVM = true
		_ = kvm.Close()
	}
	gpus, _ := filepath.Glob("/dev/nvidia[0-9]*")
	f.GPU = len(gpus) > 0
	if runtime.GOOS != "windows" {
		f.Isolation = append(f.Isolation, extensions.IsolationNone)
	}
	notes, err := b.prove(ctx)
	if err == nil {
		f.Isolation = append(f.Isolation, extensions.IsolationProcess)
	} else {
		note := err.Error()
		if remedy := extensions.RemedyOf(err); remedy != "" {
			note += "; " + remedy
		}
		f.Notes = append(f.Notes, note)
	}
	f.Notes = append(f.Notes, notes...)
	return f, nil, nil
}

func (b *Backend) prove(ctx context.Context) ([]string, error) {
	id, err := extensions.NewID(nil)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	spec := extensions.Spec{ID: id, Account: b.settings.account, Name: "probe", Generation: 1, CreatedAt: now, Deadline: now.Add(probeLife),
		Isolation: extensions.IsolationProcess, Network: extensions.Network{Default: "deny"}, Workspace: extensions.Workspace{Access: extensions.AccessNone}}
	trial := &Backend{settings: b.settings}
	trial.settings.max = 0
	h, _, err := trial.Provision(ctx, spec)
	if !h.IsZero() {
		defer func() { _, _ = trial.Teardown(context.WithoutCancel(ctx), h) }()
	}
	if err != nil {
		return nil, err
	}
	notes := holding(b.settings.box(id))
	r, err := trial.Exec(ctx, h, extensions.ExecRequest{Command: []string{"/bin/true"}, Timeout: 10 * time.Second})
	if err == nil && r.ExitCode != 0 {
		err = extensions.Errorf(extensions.KindUnsupported, "a program in a trial sandbox failed: %s", extensions.Clean(string(r.Stderr), 200))
	}
	return notes, err
}
