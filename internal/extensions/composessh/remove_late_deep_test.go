package composessh

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// What docker was still making when its client was killed appears a moment later.
func TestWhatAKilledCreateHadAskedForIsSeen(t *testing.T) {
	t.Parallel()
	inShells(t, []string{"lease", "folder", "remove"}, `
use_root
use_box sbx-x
mkdir "$box"
step() { :; }
sleep() { command sleep 0.1; [ "$1" != 1 ] || : >"$root/slept"; } # the watch over a command sleeps longer
proxy_down() { :; }
firewall_down() { :; }
deny_down() { :; }
toolbox_end() { :; }
container=`+sixtyFour+`
docker() { case $1 in
	ps) [ ! -e "$root/slept" ] || [ -e "$root/removed" ] || echo "$container $id-web-1" ;;
	rm) : >"$root/removed" ;;
esac; }
remove_objects
[ -e "$root/slept" ] || echo 'at once'
cut_off=1
remove_objects
[ -e "$root/removed" ] && echo "removed$removed"
`, "at once\nremoved containers")
}

const sixtyFour = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// busybox's rm goes only as deep as a path is long; what a link leads to stays.
func TestDeepTreesAreRemoved(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: starts no other processes")
	}
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("no busybox here")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root, or a toolbox")
	}
	tools := t.TempDir()
	for _, tool := range []string{"rm", "find", "mv", "sh"} {
		must(t, os.WriteFile(filepath.Join(tools, tool), []byte("#!/bin/sh\nexec busybox "+tool+" \"$@\"\n"), 0o755))
	}
	for name, c := range map[string]string{"long names": "'n' x 200, 400", "short names": "'d', 2600"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShells(t, []string{"folder", "remove", "toolbox"}, `
PATH=`+tools+`:$PATH
use_root
mkdir "$root/kept" "$root/tree"
echo x >"$root/kept/file"
perl -e 'my ($n, $d) = (`+c+`); my $kept = shift; chdir shift; for (1..$d) { mkdir $n; symlink $kept, "l" if $_ % 50 == 0; chdir $n or die }' "$root/kept" "$root/tree"
quietly toolbox_remove_tree "$root/tree"
[ -e "$root/tree" ] && echo 'too deep for rm'
remove_tree "$root/tree" && echo removed
echo $(ls -A "$root") $(ls -A "$root/kept")
`, "too deep for rm\nremoved\nkept file")
		})
	}
}

// Containers that carry the id but another account's label are not removed for it.
func TestContainersOfAnotherAccountStay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b, spec := s.open(t), s.spec(t)
	other := docker(t, "run", "-d", "--network", "none", "--name", string(spec.ID)+"-web-1", "--label",
		"com.docker.compose.project="+string(spec.ID),
		"--label", extensions.LabelID+"="+string(spec.ID), "--label", extensions.LabelAccount+"=other/one", hosttest.Image(t), "sleep", "300")
	t.Cleanup(func() { docker(t, "rm", "-f", other) })
	_, _, err := b.Provision(t.Context(), spec)
	wantKind(t, "a create over somebody else's containers", err, extensions.KindConflict)
	if state := docker(t, "inspect", "-f", "{{.State.Status}}", other); state != "running" {
		t.Errorf("the other's container is %s", state)
	}
	if _, err := os.Stat(s.root); err == nil {
		t.Error("a folder is left")
	}
}
