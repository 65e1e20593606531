//go:build unix

package local

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/initd"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/stage"
)

func (b box) plainPath(name string) string { return b.path(filesName) + "/" + name }

// launchPlain starts an init without walls if the profile says isolation none. Otherwise it returns why, the
// reason there are no walls.
func (b *Backend) launchPlain(ctx context.Context, bx box, rec *record, spec extensions.Spec, why error) error {
	if spec.Isolation != extensions.IsolationNone {
		return why
	}
	if err := acceptPlain(spec); err != nil {
		return err
	}
	rec.Mode = modeNone
	rec.Unenforced = []string{"no walls: " + why.Error()}
	if err := bx.write(*rec); err != nil {
		return err
	}
	home := bx.plainPath("home")
	cfg := initConfig(spec, home, standardPath)
	cfg.Groups, cfg.Remove = bx.path(groupsName), []string{bx.path(filesName)}
	folders := []string{home}
	if access(spec) != extensions.AccessNone {
		cfg.Workspace = bx.plainPath("workspace")
		cfg.Seed = cfg.Workspace
		folders = append(folders, cfg.Workspace)
	}
	for _, dir := range folders {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	p, err := newPipes(bx)
	if err != nil {
		return err
	}
	defer p.close()
	pid, err := startSelf([]string{stage.Name, stage.ModePlain, string(spec.ID)}, p.files(nil, nil, nil))
	p.closeTheirs()
	if err != nil {
		return err
	}
	if rec.Init, err = identify(pid); err != nil {
		return p.reason(ctx, err)
	}
	rec.StartedAt = time.Now().UTC()
	if err := bx.write(*rec); err != nil {
		return err
	}
	return p.hand(ctx, cfg)
}

// acceptPlain refuses what only walls or cgroups can enforce.
func acceptPlain(spec extensions.Spec) error {
	refuse := func(what, remedy string) error {
		return extensions.Errorf(extensions.KindUnsupported, "without isolation %s", what).WithRemedy("%s", remedy)
	}
	r := spec.Resources
	switch {
	case spec.Network.Default != "allow":
		return refuse("the network cannot be denied", "set network.default: allow, or use a machine that can build walls")
	case access(spec) == extensions.AccessRO:
		return refuse("the workspace cannot be read-only", "set workspace.access: rw")
	case spec.Delivery() == extensions.SecretsFile:
		return refuse("secrets cannot be files in memory", "set secrets_as: env, or use a machine that can build walls")
	case r.GPU != nil:
		return refuse("no GPU is available", "drop resources.gpu")
	case !r.BestEffort && (r.CPU != nil || r.MemoryMB != nil || r.DiskMB != nil || r.Pids != nil):
		return refuse("no limit can be enforced", "drop the limits, or set resources.best_effort: true")
	}
	return nil
}

func startSelf(argv []string, files []*os.File) (int, error) {
	exe, err := selfPath()
	if err != nil {
		return 0, err
	}
	return start(exe, argv, files, &syscall.SysProcAttr{Setsid: true})
}

// killGroups ends what a killed init without walls had started: the programs with the sandbox's id in their
// environment and, if environments cannot be read, the sessions the init noted.
func (b box) killGroups(rec record) error {
	if rec.Init.rebooted() {
		return nil
	}
	for range 100 {
		left := initd.Members(string(b.id))
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(left) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	raw, err := os.ReadFile(b.path(groupsName))
	if err != nil || runtime.GOOS == "linux" {
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 1 {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}
	return nil
}
