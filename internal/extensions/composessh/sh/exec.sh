# Operation: run one command in a service. Arguments: the command, literal.
# Variables besides those of inside.sh: dir, login (a user of the container), mark, input (1 = stdin exists), terminal
# (1 = there is one), environment (lines NAME=value), exported (words NAME:n; the value, which may have several lines, is
# in sbx_env_n), and those of watch.sh. The command ends with the connection, however that ended. With cancel=1 the command
# of that mark is killed.

use_root
use_box "$id"
if [ "${cancel-}" = 1 ]; then
	inside_find
	mark_kill "$mark" "$container" || fail unavailable "a command in $service could not be ended" 'check its processes: docker top'
	say '{"exit":0}'
	exit 0
fi
need_tools
use_begin
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

# The parent is sshd's process for this connection, as far as this script can see.
connected() { [ -d "/proc/$PPID" ] || kill -0 "$PPID" 2>/dev/null; }
connected && watched=1 || watched=

# sbx_end kills the command. One that cannot be killed must not block the caller.
sbx_end() {
	fail() { return 1; }
	trap '' TERM HUP USR1
	mark_kill "$mark" "$container"
	sleep 3 &
	sbx_nap=$!
	while kill -0 "$sbx_nap" 2>/dev/null && kill -0 "$client" 2>/dev/null; do sleep 0.1 2>/dev/null || sleep 1; done
	kill -9 "$sbx_nap" "$client" 2>/dev/null
}

# hang_up ends the command when its caller is gone.
hang_up() {
	sbx_watching
	trap 'sbx_left=1; [ -z "$sbx_nap" ] || kill -9 "$sbx_nap" 2>/dev/null' TERM HUP
	while [ -z "$sbx_over$sbx_left" ] && { [ -z "$watched" ] || connected; }; do sbx_sleep 1; done
	[ -z "$sbx_over" ] || exit 0
	sbx_end
	kill -s USR1 "$timer" 2>/dev/null
	exit 0
}

# start becomes the client. It sets the caller's variables last, so that none of their names changes this script.
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
# A shell says which of these processes dies of a signal: a client that had to be killed, and what has not set its trap yet when
# it is told of the end. Standard error is the command's.
exec 4<&0 5>&2 </dev/null 2>/dev/null
if [ -n "$environment" ]; then
	printf '%s' "$environment" | start "$@" 3<&0 <&4 2>&5 4<&- 5>&- &
else
	start "$@" <&4 2>&5 4<&- 5>&- &
fi
client=$!
exec 4<&-
sbx_expire </dev/null >/dev/null 2>&1 5>&- &
timer=$!
hang_up </dev/null >/dev/null 2>&1 5>&- &
watcher=$!
wait "$client"
code=$?
[ -z "$gone" ] || exit 0
kill -s USR1 "$timer" "$watcher"
wait "$timer"
case $? in
3) late=true ;;
*) late=false ;;
esac
# Docker's own refusals look like a command's exit; whether the service still runs distinguishes them.
state=running
if [ "$code" = 1 ] || [ "$code" -ge 126 ]; then
	state=$(docker container inspect -f '{{.State.Status}}' "$container" 2>/dev/null </dev/null) || {
		docker version >/dev/null 2>&1 </dev/null && state=gone || state=docker
	}
fi
say "{\"exit\":$code,\"timeout\":$late,\"state\":\"$state\",\"service\":\"$service\"}" 2>&5
