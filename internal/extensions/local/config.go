package local

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The ways to build the walls.
const (
	launcherAuto       = "auto"
	launcherNamespaces = "namespaces"
	launcherBubblewrap = "bubblewrap"
)

// defaultUIDBase is the first host uid of sandboxes that root creates. It lies above the ranges of
// distributions' users, subordinate ids and systemd's containers.
const defaultUIDBase = 2_147_352_576

// uidCount is how many sandboxes root can run at once.
const uidCount = 65_536

var configFields = []extensions.Field{
	{Name: "root", Type: extensions.FieldString, Doc: "Folder for records and snapshots, absolute; default: `local` in the state folder."},
	{Name: "launcher", Type: extensions.FieldString, Enum: []string{launcherAuto, launcherNamespaces, launcherBubblewrap},
		Doc: "Program that builds the walls; `auto` (the default) uses user namespaces and falls back to bubblewrap."},
	{Name: "expose", Type: extensions.FieldStrings, Doc: "More host folders that sandboxes may read and execute, such as `/opt/go`."},
	{Name: "max_sandboxes", Type: extensions.FieldInt, Doc: "Maximum number of sandboxes at once; default: no limit."},
	{Name: "uid_base", Type: extensions.FieldInt, Doc: "First of the 65536 host uids for sandboxes that root creates; default 2147352576."},
}

type settings struct {
	binding  string
	account  string
	root     string
	launcher string
	expose   []string
	max      int64 // 0 = no bound
	uidBase  int
	host     string // name of the placement host, may be empty
}

func parseConfig(cfg extensions.Config) (settings, error) {
	if err := extensions.CheckFields("config", configFields, cfg.Values); err != nil {
		return settings{}, err
	}
	s := settings{binding: cfg.Binding, account: cfg.Account, launcher: launcherAuto, uidBase: defaultUIDBase}
	if cfg.StateDir != "" {
		s.root = filepath.Join(cfg.StateDir, "local")
	}
	if v, ok := cfg.Values["root"].(string); ok {
		s.root = v
	}
	if v, ok := cfg.Values["launcher"].(string); ok {
		s.launcher = v
	}
	s.expose = extensions.Strings(cfg.Values["expose"])
	s.max = extensions.Whole(cfg.Values["max_sandboxes"], 0)
	s.uidBase = int(extensions.Whole(cfg.Values["uid_base"], defaultUIDBase))
	if cfg.Host != nil {
		if !cfg.Host.Local {
			return settings{}, extensions.Errorf(extensions.KindInvalid, "host %q is not this machine", cfg.Host.Name).
				WithRemedy("give the host `local = true`, or choose an extension that works over SSH")
		}
		s.host = cfg.Host.Name
		if c := cfg.Host.Capacity; c != nil && c.MaxSandboxes > 0 && (s.max == 0 || c.MaxSandboxes < s.max) {
			s.max = c.MaxSandboxes
		}
	}
	return s, s.check()
}

// forbiddenViews would open a wall if a sandbox could read them.
var forbiddenViews = []string{"/", "/proc", "/sys", "/dev", "/run", "/var", "/var/run", "/var/lib", "/etc", "/root", "/home", "/tmp",
	"/boot"}

func (s settings) check() error {
	invalid := func(format string, args ...any) *extensions.Error {
		return extensions.Errorf(extensions.KindInvalid, format, args...)
	}
	if !filepath.IsAbs(s.root) || strings.ContainsRune(s.root, 0) {
		return invalid("config.root: %q is not an absolute path", s.root)
	}
	if s.max < 0 {
		return invalid("config.max_sandboxes: %d is negative", s.max)
	}
	if s.uidBase < 1000 || s.uidBase > 1<<31-1-uidCount {
		return invalid("config.uid_base: %d is not between 1000 and %d", s.uidBase, 1<<31-1-uidCount)
	}
	for _, p := range s.expose {
		clean := filepath.Clean(p)
		if !filepath.IsAbs(p) || clean != p || strings.ContainsRune(p, 0) {
			return invalid("config.expose: %q is not a clean absolute path", p)
		}
		if slices.Contains(forbiddenViews, p) || strings.HasPrefix(s.root+"/", p+"/") || strings.HasPrefix(p+"/", s.root+"/") {
			return invalid("config.expose: %q would break the sandboxes' isolation", p).
				WithRemedy("expose only the folder of tools that you need")
		}
	}
	return nil
}
