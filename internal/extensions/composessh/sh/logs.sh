# Operation: the output of services. Variables besides those of inside.sh: follow (1 = go on), tail (last lines, '' =
# all). It ends with the sandbox, and with its stdin: a reader that went away leaves nothing behind.

use_root
use_box "$id"
need_tools
exec 4<&0 </dev/null
inside_list
if [ -n "$service" ]; then
	case " $services " in
	*" $service "*) ;;
	*) fail invalid "the sandbox has no service \"$service\"; it has: $services" 'name one of them' ;;
	esac
fi
chosen='' count=0
log_choose() {
	[ -z "$service" ] || [ "$3" = "$service" ] || return 0
	chosen="$chosen $1:$3" count=$((count + 1))
}
inside_each log_choose

# log_of CONTAINER OPTION… prints both of its streams in their order.
log_of() {
	docker logs "$@" 2>&1 </dev/null
}

# log_past prints the past output, of several containers by time.
log_past() {
	for one in $chosen; do
		log_of ${tail:+--tail "$tail"} --timestamps "${one%%:*}" | if [ -n "$service" ]; then cat; else sed "s/ / ${one#*:} | /"; fi
	done | if [ "$count" -gt 1 ]; then sort -s -k 1,1; else cat; fi |
		if [ -n "$tail" ]; then tail -n "$tail"; else cat; fi | sed 's/^[^ ]* //'
}

# log_on follows one container, line by line.
log_on() {
	log_of --follow ${tail:+--tail "$tail"} "$1" | if [ -n "$service" ]; then
		cat
	elif sed -u p </dev/null >/dev/null 2>&1; then
		sed -u "s/^/$2 | /"
	else
		while IFS= read -r line || [ -n "$line" ]; do
			printf '%s | %s\n' "$2" "$line"
		done
	fi
}

# end_all ends this script's processes: sshd makes them one group.
end_all() {
	trap '' TERM
	kill 0
}

trap : TERM
say '{"method":"logs"}'
{
	cat >/dev/null
	end_all
} <&4 >/dev/null 2>&1 &
watcher=$!
exec 4<&-
if [ -n "$follow" ]; then
	waiting=
	for one in $chosen; do
		log_on "${one%%:*}" "${one#*:}" &
		waiting="$waiting $!"
	done
	# shellcheck disable=SC2086
	wait $waiting
else
	log_past &
	wait "$!"
fi
trap '' TERM
kill "$watcher" 2>/dev/null
say '{"exit":0}'
