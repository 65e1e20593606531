# Operation: one command in a service. Arguments: the command, literal.
# Variables beside those of inside.sh: dir, login (a user of the container),
# mark, input (1 = there is stdin), terminal (1 = there is one), environment
# (lines NAME=value), exported (words NAME:n; the value, of several lines, is in
# sbx_env_n), limit and limit_up (seconds; limit may have a point).
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

# expire waits for the limit, then ends the command: 3 says that it did.
expire() {
	# Nobody hears this one, and it has to go on to the end.
	fail() { return 1; }
	over='' nap=''
	trap 'over=1; [ -z "$nap" ] || kill "$nap" 2>/dev/null' TERM
	sleep "$limit" &
	nap=$!
	[ -z "$over" ] || kill "$nap" 2>/dev/null
	wait "$nap"
	slept=$?
	[ -z "$over" ] || exit 0
	if [ "$slept" != 0 ]; then
		sleep "$limit_up" &
		nap=$!
		wait "$nap"
		[ -z "$over" ] || exit 0
	fi
	trap '' TERM
	mark_kill "$mark" "$container"
	# What cannot be killed shall not hold the caller.
	sleep 3 &
	nap=$!
	while kill -0 "$nap" 2>/dev/null && kill -0 "$client" 2>/dev/null; do sleep 0.1 2>/dev/null || sleep 1; done
	kill -9 "$nap" "$client" 2>/dev/null
	exit 3
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
wait "$client"
code=$?
kill "$timer" 2>/dev/null
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
