package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// probeLife bounds the life of a probe's sandbox, should we die during the probe.
const probeLife = 20 * time.Second

// Probe implements extensions.Prober. It proves each isolation level by creating a sandbox of it and
// running a program there.
func (b *Backend) Probe(ctx context.Context) (extensions.Facts, []extensions.Observation, error) {
	if err := ctx.Err(); err != nil {
		return extensions.Facts{}, nil, failed("probe", "", err)
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
	facts := extensions.Facts{Machine: &f, Narrowing: extensions.Narrowing{OS: []string{f.OS}, Arch: []string{f.Arch}}}
	if runtime.GOOS != "linux" { // it does not tell what CPU time programs use
		none := extensions.IdleReapNone
		facts.Narrowing.IdleReap = &none
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
		facts.Notes = append(facts.Notes, "isolation: "+note)
	}
	f.Notes = append(f.Notes, notes...)
	if facts.Narrowing.IsolationLevels = f.Isolation; len(f.Isolation) == 0 {
		facts.Unfit = f.Notes
	}
	return facts, nil, nil
}

// missing returns which folders there are not yet.
func missing(dirs ...string) (none []string) {
	for _, dir := range dirs {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			none = append(none, dir)
		}
	}
	return none
}

// removeMade removes the folders that a trial made and that nobody uses by now: a probe leaves nothing.
func removeMade(dirs []string) {
	for _, dir := range dirs {
		_ = os.Remove(dir) // only if it is empty
	}
}

// proving lets the trials of several bindings take turns, so that each knows which folders it made.
var proving sync.Mutex

func (b *Backend) prove(ctx context.Context) ([]string, error) {
	proving.Lock()
	defer proving.Unlock()
	id, err := extensions.NewID(nil)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	spec := extensions.Spec{ID: id, Account: b.settings.account, Name: "probe", Generation: 1, CreatedAt: now, Deadline: now.Add(probeLife),
		Isolation: extensions.IsolationProcess, Network: extensions.Network{Default: "deny"},
		Workspace: extensions.Workspace{Access: extensions.AccessNone}}
	trial := &Backend{settings: b.settings}
	trial.settings.max = 0
	defer removeMade(missing(b.settings.root, filepath.Dir(b.settings.root)))
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
