# The first process of a container. Nothing inside can signal it away, and everything inside ends with it: at the
# deadline, whoever else is gone. Arguments: the deadline in seconds since 1970, then the command to run, if any. A later
# deadline is in the file lease; USR1 says that it changed. Secrets come on stdin.
until=$1 dir=/.sandboxer app='' left=''
shift
trap : USR1

# Lines PATH CONTENT, as printf %b reads it; they end with an empty one.
umask 022
while IFS=' ' read -r path content && [ -n "$path" ]; do
	printf %b "$content" >>"$path"
done
exec </dev/null
[ ! -d /run/sandboxer ] || : >/run/sandboxer/done

# look sets left, the seconds to sleep: not all at once, since a machine may sleep too, and in short steps at the end.
look() {
	left=''
	{ read -r left <"$dir/lease"; } 2>/dev/null
	case $left in
	'' | *[!0-9]*) ;;
	*) until=$left ;;
	esac
	left=$((until - $(date +%s)))
	[ "$left" -gt 0 ] || exit 124
	left=$((left - 1))
	[ "$left" -lt 60 ] || left=60
	[ "$left" -gt 0 ] || left=0.2
}

nap() { sleep "$1" 2>/dev/null || sleep 1; }

if [ $# = 0 ]; then
	while look; do
		nap "$left" &
		wait $!
	done
	exit 1
fi
[ ! -r /run/sandboxer/env ] || . /run/sandboxer/env
"$@" &
app=$!
for signal in TERM INT QUIT HUP; do
	# shellcheck disable=SC2064
	trap "kill -s $signal $app 2>/dev/null" "$signal"
done
while look; do
	(
		trap - TERM INT QUIT HUP USR1
		nap "$left"
		kill -s USR1 1
	) &
	wait "$app"
	code=$?
	kill -0 "$app" 2>/dev/null || exit "$code"
done
exit 1
