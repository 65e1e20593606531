package composessh

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// One look is enough for what runs on without its folder, and the images that were
// built for it go too, though no manifest names them.
func TestWhatRunsOnWithoutItsFolderGoesWithItsImages(t *testing.T) {
	t.Parallel()
	inShells(t, []string{"lease", "folder", "remove", "memory", "toolbox", "tries", "rules", "deny", "firewall", "proxy", "images"}, `
use_root
mkdir "$root/images"
: >"$root/images/d1.for.sbx-x"
: >"$root/images/d2.for.sbx-x"
touch -d '2020-01-01 00:00' "$root/images/d1.for.sbx-x"
sleep() { command sleep 0.1; }
remove_walls() { :; }
container=`+sixtyFour+`
docker() { case "$1 $2" in
	'ps '*) [ -e "$root/removed" ] || echo "$container sbx-x-web-1" ;;
	'rm '*) echo containers >"$root/removed" ;;
	'image inspect') ! grep -q "$3" "$root/removed" ;;
	'image rm') echo "$4" >>"$root/removed" ;;
esac; }
trap 'echo $(ls -A "$root") $(cat "$root/removed")' EXIT
task=adrift task_id=sbx-x
`+shtext.Join(scripts, "loop", "reaper"), "removed containers sandboxer.invalid/build:d2 sandboxer.invalid/build:d1")
}
