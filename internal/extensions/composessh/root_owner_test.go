package composessh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A root that somebody else made, or could change, would run their programs as
// the login: no operation uses it.
func TestARootOfSomebodyElseIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t))
	must(t, os.Chmod(s.root, 0o777))
	refused := func(what string, err error) {
		t.Helper()
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(fmt.Sprint(err), "cannot be trusted") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := b.Status(t.Context(), []extensions.Handle{h})
	refused("status", err)
	_, _, err = b.Provision(t.Context(), s.spec(t))
	refused("provision", err)
	_, err = b.Exec(t.Context(), h, extensions.ExecRequest{Command: []string{"true"}})
	refused("exec", err)
	_, err = b.Teardown(t.Context(), h)
	refused("teardown", err)
	must(t, os.Chmod(s.root, 0o700))
	if o := s.observe(t, b, h); o.Phase != extensions.PhaseReady {
		t.Errorf("made safe again, it is %s: %s", o.Phase, o.Reason)
	}
}

func TestWhichRootsAreTrusted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: starts no other processes")
	}
	if os.Getuid() != 0 {
		t.Skip("folders of somebody else need root")
	}
	const other = 65534
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string) (root string)
		want string
	}{
		"own":           {func(t *testing.T, dir string) string { return rootPlace(t, dir, "r", 0o700, 0) }, "fine"},
		"not there yet": {func(_ *testing.T, dir string) string { return dir + "/a/b/r/" }, "fine"},
		"with spaces":   {func(t *testing.T, dir string) string { return rootPlace(t, dir, "r * $(x)  y", 0o700, 0) }, "fine"},
		"below sticky": {func(t *testing.T, dir string) string {
			return rootPlace(t, rootPlace(t, dir, "s", 0o1777, 0), "r", 0o700, 0)
		}, "fine"},
		"through a link": {func(t *testing.T, dir string) string {
			return rootLink(t, rootPlace(t, dir, "d", 0o755, 0), dir+"/l", 0) + "/r"
		}, "fine"},
		"readable":   {func(t *testing.T, dir string) string { return rootPlace(t, dir, "r", 0o750, 0) }, "open to others"},
		"writable":   {func(t *testing.T, dir string) string { return rootPlace(t, dir, "r", 0o702, 0) }, "open to others"},
		"of another": {func(t *testing.T, dir string) string { return rootPlace(t, dir, "r", 0o700, other) }, "belongs to the user id 65534"},
		"a link": {func(t *testing.T, dir string) string {
			return rootLink(t, rootPlace(t, dir, "d", 0o700, 0), dir+"/r", 0)
		}, "is a symbolic link"},
		"a dangling link": {func(t *testing.T, dir string) string { return rootLink(t, dir+"/none", dir+"/r", 0) }, "is a symbolic link"},
		"a file": {func(t *testing.T, dir string) string {
			must(t, os.WriteFile(dir+"/r", nil, 0o600))
			return dir + "/r"
		}, "is not a folder"},
		"below one that others write": {func(t *testing.T, dir string) string { return rootPlace(t, dir, "w", 0o777, 0) + "/r" },
			"can be written by others"},
		"below one that a group writes": {func(t *testing.T, dir string) string {
			p := rootPlace(t, dir, "w", 0o700, 0)
			must(t, os.Chown(p, 0, other))
			must(t, os.Chmod(p, 0o770))
			return p + "/r"
		}, "can be written by others"},
		"below another's": {func(t *testing.T, dir string) string { return rootPlace(t, dir, "w", 0o755, other) + "/r" },
			"belongs to the user id 65534"},
		"through another's link": {func(t *testing.T, dir string) string {
			return rootLink(t, rootPlace(t, dir, "d", 0o755, 0), dir+"/l", other) + "/r"
		}, "belongs to the user id 65534"},
		"through a link to an open one": {func(t *testing.T, dir string) string {
			return rootLink(t, rootPlace(t, rootPlace(t, dir, "w", 0o777, 0), "d", 0o755, 0), dir+"/l", 0) + "/r"
		}, "can be written by others"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := c.make(t, t.TempDir())
			inShells(t, nil, `
answer() { printf '%s\n' "$1"; }
json_string() { printf '"%s"' "$1"; }
root='`+root+`'
said=$(use_root; set -- '*'; echo "fine")
case $said in *'`+c.want+`'*) echo as wanted ;; *) echo "$said" ;; esac
`, "as wanted")
		})
	}
}

func rootPlace(t testing.TB, dir, name string, mode os.FileMode, owner int) string {
	t.Helper()
	p := filepath.Join(dir, name)
	must(t, os.Mkdir(p, 0o700))
	must(t, os.Chown(p, owner, owner))
	must(t, syscall.Chmod(p, uint32(mode)))
	return p
}

func rootLink(t testing.TB, to, at string, owner int) string {
	t.Helper()
	must(t, os.Symlink(to, at))
	must(t, os.Lchown(at, owner, owner))
	return at
}
