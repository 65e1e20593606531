package hostlease

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext/shtexttest"
)

func TestProgramsArePOSIX(t *testing.T) {
	t.Parallel()
	shtexttest.POSIX(t, shtexttest.Programs(t, Scripts))
}

// inShells runs a script after the library in each shell, and wants it to print
// the same.
func inShells(t *testing.T, files []string, body, want string) {
	t.Helper()
	text := shtext.Join([]*shtext.Files{Scripts}, append([]string{"host", "root"}, files...)...)
	shtexttest.Prints(t, "root=$PWD account=acme/web\nprogress() { :; }\n"+text+body, want)
}

func TestManifestKeepsWhatIsNotChanged(t *testing.T) {
	t.Parallel()
	inShells(t, nil, `
use_root
mkdir -p "$root/x"
box=$root/x
manifest_put a 1 b 'two words' c '$(never) "quoted" \n'
manifest_put b 2 d "line
break"
manifest_add list one
manifest_add list two
manifest_add list one
cat "$box/manifest"
manifest_get c && printf '%s\n' "$value"
manifest_get missing || echo none
`, strings.Join([]string{"a=1", `c=$(never) "quoted" \n`, "b=2", "d=line break", "list=one two", `$(never) "quoted" \n`, "none"}, "\n"))
}

// Under the lock a manifest is remembered: as it was changed last, and not beyond its file.
func TestAManifestIsRememberedUnderTheLockOnly(t *testing.T) {
	t.Parallel()
	inShells(t, nil, `
use_root
tell() { if manifest_get a; then echo "$1 $value"; else echo "$1 none"; fi; }
id=x box=$root/x op=create
mkdir "$box" "$root/y"
printf '' >"$box/lock"
echo a=before >"$box/manifest"
echo a=neighbor >"$root/y/manifest"
tell free
echo a=another >"$box/manifest"
lock_sandbox 0
tell locked
manifest_put a own b 2
tell changed
quietly manifest_put a quiet
tell quietly
get_from "$root/y/manifest" a && echo "other $value"
tell again
(use_box y && tell beside)
rm "$box/manifest"
tell removed
manifest_put c 3
cat "$box/manifest"
unlock_sandbox
echo a=later >"$box/manifest"
tell unlocked
lock_sandbox 0
tell 'locked again'
set -f
IFS=,
tell 'split,'
case $- in *f*) echo "$IFS" ;; esac
`, "free before\nlocked another\nchanged own\nquietly quiet\nother neighbor\nagain quiet\nbeside neighbor\nremoved none\nc=3\nunlocked later\n"+
		"locked again later\nsplit, later\n,")
}

func TestALockIsHeldAndItsHolderKnown(t *testing.T) {
	t.Parallel()
	inShells(t, nil, `
use_root
id=x box=$root/x op=create
mkdir "$box"
lock_sandbox 0
echo "no file $?"
printf '' >"$box/lock"
lock_sandbox 0
echo "first $?"
flock -n "$box/lock" true || echo held
read_holder
holder_lives && echo "alive $holder_op"
printf '%s %s %s %s %s\n' "$holder_pid" 1 "$holder_boot" "$holder_group" create >"$box/holder"
read_holder
holder_lives || echo 'another process of the same number'
unlock_sandbox
flock -n "$box/lock" true && echo free
rm -r "$box"
lock_sandbox 0
echo "gone $?"
mkdir "$box"
printf '' >"$box/lock"
lock_sandbox 0
rm -r "$box"
unlock_sandbox
echo 'goes on without its folder'
`, "no file 2\nfirst 0\nheld\nalive create\nanother process of the same number\nfree\ngone 2\ngoes on without its folder")
}

// Ten scripts that begin together would each read the loop's text, and look who they are, to find that one runs.
func TestOfScriptsThatBeginTogetherOneStartsTheLoop(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("systemd starts the loop here")
	}
	inShells(t, []string{"timer"}, `
use_root
mkdir -p -m 0700 "$root"
mkfifo "$root/ran"
printf '%s\n' 'echo $$ >"$root/ran"; exec sleep 600' >"$root/loop"
exec 3<>"$root/ran"
timer_start "$root/loop"
read -r first <&3
started=$!
for _ in 1 2 3; do timer_start "$root/loop"; done
[ "$!" = "$started" ] && echo one
kill "$first"
until flock -n "$root/reaper.lock" true; do sleep 0.1; done
timer_start "$root/loop"
read -r second <&3
kill -0 "$second" && [ "$first" != "$second" ] && echo "$timer"
kill "$second"
[ ! -e /proc/self/fd/7 ] && echo closed
`, "one\nsession\nclosed")
}

// leaseTry says what is left of the lease in box, in the words of the tests below.
const leaseTry = `
try() { if ! lease_left; then echo "$1none"; elif [ "$left" -gt 0 ]; then echo "$1left"; else echo "$1over"; fi; }
set_to() { sed -i "s/^${1%%=*}=.*/$1/" "$box/$2"; }
use_root
box=$root
read_clock
started=$uptime
`

func TestALeaseHoldsAgainstClocksAndReboots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lease, want string }{
		"as written":                            {"", "left"},
		"the wall clock was set back":           {"wall=99999999999", "left"},
		"the wall clock was set forward":        {"wall=1", "left"},
		"the uptime has passed":                 {"end=1", "over"},
		"another boot, in time":                 {"boot=other", "left"},
		"another boot, too late":                {"boot=other wall=1", "over"},
		"another boot whose clock is far back":  {"boot=other wall=99999999999 remaining=1", "over"},
		"another boot, up longer than was left": {"boot=other remaining=0", "over"},
	} {
		words := map[string]string{"boot": "$boot", "end": "$((started + 999999999999))", "wall": "$(($(date +%s) + 9999999999))",
			"remaining": "999999999999"}
		for change := range strings.FieldsSeq(c.lease) {
			key, value, _ := strings.Cut(change, "=")
			words[key] = value
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// What is left is more than this machine can have been up. The manifest's
			// copy is judged as the lease is, however the lease was lost, and no copy
			// counts beside a lease.
			inShells(t, []string{"lease"}, leaseTry+fmt.Sprintf(`
lease_write 999999999999 2030-01-01T00:00:00Z 3
for change in %s; do set_to "$change" lease; done
try 'lease '
manifest_put deadline 'other 1 1 1 x'
try 'and another deadline '
manifest_put deadline "%s %s %s %s 2030-01-01T00:00:00Z"
for loss in 'rm' 'truncate -s 0' 'truncate -s 60' 'sed -i s/^generation.*//' 'sed -i s/^end=.*/end=/' 'sed -i s/^wall=.*/wall=x/' 'dd bs=80 count=1 status=none if=/dev/zero of='; do
	cp "$box/lease" "$box/kept"
	case $loss in *=) $loss$box/lease ;; *) $loss "$box/lease" ;; esac
	try "$loss: "
	mv "$box/kept" "$box/lease"
done
`, c.lease, words["boot"], words["end"], words["wall"], words["remaining"]),
				strings.NewReplacer("@", c.want).Replace("lease @\nand another deadline @\nrm: @\ntruncate -s 0: @\ntruncate -s 60: @\nsed -i "+
					"s/^generation.*//: @\n"+
					"sed -i s/^end=.*/end=/: @\nsed -i s/^wall=.*/wall=x/: @\ndd bs=80 count=1 status=none if=/dev/zero of=: @"))
		})
	}
}

// The copy moves with every change of the lease, and nothing that cannot be
// reckoned with ends the shell that looks.
func TestTheCopyOfALeaseIsItsLast(t *testing.T) {
	t.Parallel()
	inShells(t, []string{"lease"}, leaseTry+`
lease_write 999999999999 2030-01-01T00:00:00Z 3
lease_write 0 2029-01-01T00:00:00Z 3
rm "$box/lease"
try 'shortened '
lease_write 999999999999 2031-01-01T00:00:00Z 3
rm "$box/lease"
try 'extended '
for deadline in '' 1 'b' 'b x y z' 'b 1 2' 'b -1 2 3 u' 'b 99999999999999999999 1 1 u' 'b * * * *'; do
	manifest_put deadline "$deadline"
	try ''
done
rm "$box/manifest"
try 'nothing '
`, "shortened over\nextended left\n"+strings.Repeat("none\n", 8)+"nothing none")
}

// On a disk that takes nothing, the lease and its copy stay as they were.
func TestALeaseThatCannotBeWrittenStaysAsItWas(t *testing.T) {
	t.Parallel()
	inShells(t, []string{"lease"}, leaseTry+`
answer() { :; }
json_string() { :; }
lease_write 999999999999 2030-01-01T00:00:00Z 3
cp "$box/lease" "$box/l" && cp "$box/manifest" "$box/m"
for file in lease.new "manifest.$$"; do
	ln -s /dev/full "$box/$file"
	(lease_write 5 2029-01-01T00:00:00Z 3) 2>/dev/null
	cmp "$box/lease" "$box/l" && cmp "$box/manifest" "$box/m" && echo same
	rm -f "$box/$file"
done
lease_write 5 2029-01-01T00:00:00Z 3
cmp -s "$box/lease" "$box/l" || echo new
`, "same\nsame\nnew")
}

func TestTimesAreTheCallersWhateverTheHostsClock(t *testing.T) {
	t.Parallel()
	inShells(t, []string{"lease"}, `
use_root
box=$root
read_clock
manifest_put clock_caller 1000000 clock_uptime "$((uptime - 500))" clock_boot "$boot" clock_wall 5
our_time
[ "$now" -ge 1005000 ] && [ "$now" -lt 1007000 ] && echo same boot
manifest_put clock_boot other clock_wall "$(($(date +%s) - 100))"
our_time
[ "$now" -ge 1100000 ] && [ "$now" -lt 1103000 ] && echo other boot
`, "same boot\nother boot")
}

func TestACommandIsBounded(t *testing.T) {
	t.Parallel()
	inShells(t, nil, `
box=$root
bounded 20 sh -c 'exit 7'
echo "$?"
bounded 1 sleep 20
echo "$?"
bounded 20 cat
echo "$?"
`, "7\n124\n0")
}
