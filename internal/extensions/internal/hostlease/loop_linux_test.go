package hostlease

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext/shtexttest"
)

// processes is a place whose sandboxes are processes: the label is in their environment.
const processes = `
ours() {
	ours=
	for environ in /proc/[0-9]*/environ; do
		tr '\000' '\n' <"$environ" 2>/dev/null | grep -qx "SANDBOXER_TEST_ID=$root/$1" || continue
		ours="$ours ${environ#/proc/}"
	done
}
runs_on() { ours "$1" && [ -n "$ours" ]; }
remove_objects() {
	removed=
	while runs_on "$id"; do
		removed=processes
		for one in $ours; do kill -9 "${one%%/*}" 2>/dev/null; done
	done
}
all_running() {
	cat /proc/[0-9]*/environ 2>/dev/null | tr '\000' '\n' | sed -n "s|^SANDBOXER_TEST_ID=\($root/\(.*\)\)|\2 \1|p"
}
remove_tree() { rm -rf -- "$1" && [ ! -e "$1" ]; }
surely_gone() { :; }
cut_off_before() { :; }
note_exit() { :; }
release_rest() { :; }
release_root() { :; }
root_kept() { return 1; }
reaper_task() { :; }
look_ended() { return 1; }
look_living() { :; }
look_around() { return 1; }
pause_after() { :; }
idle_cpu() { cpu=5; }
root_removed() { :; }
`

// The loop ends what is overdue, without a lease or without its folder, wherever the place keeps it; what has
// time left lives on, and with the last sandbox the loop and the root are gone.
func TestTheLoopServesAnyPlace(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: starts no other processes")
	}
	library := shtext.Join([]*shtext.Files{Scripts}, "host", "root", "lease", "timer", "folder", "idle")
	loop := "answer() { :; }\nprogress() { :; }\njson_string() { :; }\n" + library +
		shtext.Join([]*shtext.Files{Scripts}, "loop") + processes + "use_root\nreaper_main\n"
	begin := `
sandbox() {
	use_box "sbx-$1"
	mkdir "$box"
	printf '' >"$box/lock"
	manifest_put state ready clock_boot "$boot" clock_caller 1000 clock_uptime "$uptime"
	[ -z "$2" ] || lease_write "$2" 2030-01-01T00:00:00Z 1
	SANDBOXER_TEST_ID=$root/$id setsid sleep 1000 </dev/null >/dev/null 2>&1 &
}
use_root
read_clock
started=$uptime
mkdir -p -m 0700 "$root"
sandbox over 50
sandbox lives 100000
sandbox lost ''
for one in rests held; do
	sandbox "$one" 100000
	manifest_put idle 200
done
printf '' >"$box/use"
setsid flock -s "$box/use" sleep 1000 </dev/null >/dev/null 2>&1 &
SANDBOXER_TEST_ID=$root/sbx-stray setsid sleep 1000 </dev/null >/dev/null 2>&1 &
timer_start "$root.loop"
`
	for _, shell := range shtexttest.Shells(t) {
		t.Run(filepath.Base(strings.Join(shell, "-")), func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			root := filepath.Join(home, "root")
			must(t, os.Chmod(home, 0o700))
			must(t, os.WriteFile(root+".loop", []byte(loop), 0o600))
			alive := func(id string) bool {
				out, _ := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf(
					`cat /proc/[0-9]*/environ 2>/dev/null | tr '\000' '\n' | grep -cx 'SANDBOXER_TEST_ID=%s/sbx-%s'`, root, id)).Output()
				return strings.TrimSpace(string(out)) != "0"
			}
			cmd := exec.CommandContext(t.Context(), shell[0], shell[1:]...)
			cmd.Dir, cmd.Env = home, append(os.Environ(), "root="+root)
			cmd.Stdin = strings.NewReader("answer() { echo \"$1\"; }\nprogress() { :; }\njson_string() { echo \"$1\"; }\naccount=x\n" + library + begin)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("%v: %s", err, out)
			}
			await(t, "what is overdue, lost its lease or its folder to end", func() bool { return !alive("over") && !alive("lost") && !alive("stray") })
			await(t, "what nobody uses to end", func() bool { return !alive("rests") })
			if !alive("lives") || !alive("held") {
				t.Error("what had time left, or was used, has ended")
			}
			for _, process := range holders(t, filepath.Join(root, "sbx-held", "use")) {
				must(t, process.Kill())
			}
			await(t, "what nobody uses any more to end", func() bool { return !alive("held") })
			await(t, "the end by idleness to be recorded", func() bool {
				text, _ := os.ReadFile(filepath.Join(root, "sbx-held", "manifest"))
				return strings.Contains(string(text), "state=expired") && strings.Contains(string(text), "idled=")
			})
			await(t, "the end to be recorded", func() bool {
				text, _ := os.ReadFile(filepath.Join(root, "sbx-over", "manifest"))
				return strings.Contains(string(text), "state=expired")
			})
			for _, id := range []string{"lives", "over", "rests", "held"} {
				must(t, os.RemoveAll(filepath.Join(root, "sbx-"+id)))
			}
			await(t, "the last one and the root to be gone", func() bool {
				_, err := os.Stat(root)
				return err != nil && !alive("lives")
			})
		})
	}
}

// holders are the processes that have a file open.
func holders(t *testing.T, file string) (all []*os.Process) {
	t.Helper()
	open, err := filepath.Glob("/proc/[0-9]*/fd/*")
	must(t, err)
	for _, link := range open {
		if to, err := os.Readlink(link); err != nil || to != file {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		must(t, err)
		process, err := os.FindProcess(pid)
		must(t, err)
		all = append(all, process)
	}
	return all
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 1200 {
		if done() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("waited for %s", what)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
