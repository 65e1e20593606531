package composessh

import "testing"

// A busy kernel does not always freeze a container in the time that runc gives it.
func TestAFreezeThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	inShells(t, []string{"hold"}, `
sleep() { :; }
services_by() { found=" one two"; }
docker() {
	asked=$(($(cat "$root/asked" 2>/dev/null || echo 0) + 1))
	echo "$asked" >"$root/asked"
	case $2:$asked in
	one:1 | one:2) echo 'Error response from daemon: Cannot pause container one: OCI runtime pause failed: unable to freeze: unknown' && return 1 ;;
	three:*) echo 'unable to freeze' && return 1 ;;
	four:*) echo 'something else' && return 1 ;;
	esac
}
freeze one two && echo "frozen after $(cat "$root/asked")"
services_by() { found=" three four"; }
echo 0 >"$root/asked"
freeze three || echo "$why after $(cat "$root/asked")"
echo 0 >"$root/asked"
freeze four || echo "$why after $(cat "$root/asked")"
`, "frozen after 4\nunable to freeze after 5\nsomething else after 1")
}
