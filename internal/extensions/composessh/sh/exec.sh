# Operation: one command in a service. Arguments: the command, literal.
# Variables beside those of inside.sh: dir, login (a user of the container),
# mark, input (1 = there is stdin), terminal (1 = there is one), environment
# (lines NAME=value), exported (words NAME:n; the value, of several lines, is in
# sbx_env_n), limit and limit_up (seconds; limit may have a point). The command
# ends with the connection, whatever ended that.
# With cancel=1 the command of that mark is killed.

use_root
use_box "$id"
if [ "${cancel-}" = 1 ]; then
	inside_find
	mark_kill "$mark" "$container" || fail unavailable "a command in $service could not be ended" 'look at what runs there: docker top'
	say '{"exit":0}'
	exit 0
fi
need_tools
inside_find
inside_path "$dir"
# Options come before the arguments, which are the command.
set -- "$container" "$@"
[ -z "$login" ] || set -- --user "$login" "$@"
[ -z "$dir$mount" ] || set -- --workdir "$path" "$@"
[ -z "$terminal" ] || set -- --tty "$@"
[ -z "$input" ] || set -- --interactive "$@"
for pair in $exported; do
	set -- --env "${pair%%:*}" "$@"
done
set -- --env "SANDBOXER_EXEC=$mark" "$@"
[ -z "$environment" ] || set -- --env-file /proc/self/fd/3 "$@"

# sshd's process for this connection is the parent, as far as it is to be seen.
connected() { [ -d "/proc/$PPID" ] || kill -0 "$PPID" 2>/dev/null; }
connected && watched=1 || watched=

# Two watch the command, each until USR1. Nobody hears them, and they have to go
# on to the end: TERM is for a script whose caller gave up, HUP for one whose
# terminal is gone.
watching() {
	fail() { return 1; }
	over='' left='' nap=''
	trap 'over=1; [ -z "$nap" ] || kill -9 "$nap" 2>/dev/null' USR1
	trap '' TERM HUP
}

# nap SECONDS sleeps, until a trap has set over or left.
nap() {
	sleep "$1" &
	nap=$!
	[ -z "$over$left" ] || kill -9 "$nap" 2>/dev/null
	wait "$nap"
}

# end_command kills the command. What cannot be killed shall not hold the caller.
end_command() {
	trap '' TERM HUP USR1
	mark_kill "$mark" "$container"
	sleep 3 &
	nap=$!
	while kill -0 "$nap" 2>/dev/null && kill -0 "$client" 2>/dev/null; do sleep 0.1 2>/dev/null || sleep 1; done
	kill -9 "$nap" "$client" 2>/dev/null
}

# expire waits for the limit, then ends the command: 3 says that it did.
expire() {
	watching
	nap "$limit"
	slept=$?
	[ -z "$over" ] || exit 0
	if [ "$slept" != 0 ]; then
		nap "$limit_up"
		[ -z "$over" ] || exit 0
	fi
	end_command
	exit 3
}

# hang_up ends the command when its caller is gone.
hang_up() {
	watching
	trap 'left=1; [ -z "$nap" ] || kill -9 "$nap" 2>/dev/null' TERM HUP
	while [ -z "$over$left" ] && { [ -z "$watched" ] || connected; }; do nap 1; done
	[ -z "$over" ] || exit 0
	end_command
	kill -s USR1 "$timer" 2>/dev/null
	exit 0
}

# start becomes the client. Its own variables are set last, so that no name
# that a caller chose changes this script.
start() {
	for sbx_pair in $exported; do
		eval "${sbx_pair%%:*}=\$sbx_env_${sbx_pair##*:}; export ${sbx_pair%%:*}"
	done
	exec docker exec "$@"
}

# A terminal is the container's to interpret, from the first byte on.
[ -z "$terminal" ] || stty raw -echo 2>/dev/null
# The client ends with the terminal, the command does not.
gone=
trap 'gone=1' HUP
exec 4<&0 </dev/null
if [ -n "$environment" ]; then
	printf '%s' "$environment" | start "$@" 3<&0 <&4 4<&- &
else
	start "$@" <&4 4<&- &
fi
client=$!
exec 4<&-
expire </dev/null >/dev/null 2>&1 &
timer=$!
hang_up </dev/null >/dev/null 2>&1 &
watcher=$!
wait "$client"
code=$?
[ -z "$gone" ] || exit 0
kill -s USR1 "$timer" "$watcher" 2>/dev/null
wait "$timer"
case $? in
3) late=true ;;
*) late=false ;;
esac
# Docker's own refusals look like a command's end; whether the service still
# runs tells them apart.
state=running
if [ "$code" = 1 ] || [ "$code" -ge 126 ]; then
	state=$(docker container inspect -f '{{.State.Status}}' "$container" 2>/dev/null </dev/null) || {
		docker version >/dev/null 2>&1 </dev/null && state=gone || state=docker
	}
fi
say "{\"exit\":$code,\"timeout\":$late,\"state\":\"$state\",\"service\":\"$service\"}"
