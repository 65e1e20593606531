# The first process of a container. Nothing inside can signal it away, and everything inside ends with it: at the
# deadline, whoever else is gone. Arguments: the deadline in seconds since 1970, how long nobody may use the sandbox in
# 1/100 s ('' = for ever), then the command to run, if any. A later deadline is in the file lease; USR1 says that it
# changed, or that a use begins. Secrets come on stdin.
until=$1 limit=$2 dir=/.sandboxer app='' left='' every=60
shift 2
trap : USR1

# Lines PATH CONTENT, as printf %b reads it; they end with an empty one.
umask 022
while IFS=' ' read -r path content && [ -n "$path" ]; do
	printf %b "$content" >>"$path"
done
exec </dev/null
[ ! -d /run/sandboxer ] || : >/run/sandboxer/done

# read_clock sets now, the time since the machine's start in 1/100 s.
read_clock() {
	IFS=' .' read -r now cents _ </proc/uptime
	now=$((now * 100 + 1$cents - 100))
}

# read_cpu sets cpu, the time that all programs here have used (us). It fails if that is not told.
read_cpu() {
	if [ -r /sys/fs/cgroup/cpu.stat ]; then
		while IFS=' ' read -r key cpu; do
			[ "$key" != usage_usec ] || return 0
		done </sys/fs/cgroup/cpu.stat
	elif [ -r /sys/fs/cgroup/cpuacct/cpuacct.usage ]; then
		read -r cpu </sys/fs/cgroup/cpuacct/cpuacct.usage
		cpu=$((cpu / 1000))
		return 0
	fi
	return 1
}

# in_use reports whether a program is here whose parent is outside: somebody began it.
in_use() {
	for stat in /proc/[0-9]*/stat; do
		[ "$stat" != /proc/1/stat ] && read -r line 2>/dev/null <"$stat" || continue
		case ${line##*) } in
		[A-Z]' '[1-9]*) ;;
		*) return 0 ;;
		esac
	done
	return 1
}

# rest ends the sandbox if nobody has used it for so long. Programs here may use 1/100 of one core: limit * 10000 us / 100.
# Who begins a program while the file ending has something in it waits.
since='' mark='' told='' seen=0
rest() {
	read_clock
	read_cpu || exit 121
	{ IFS= read -r use <"$dir/use"; } 2>/dev/null
	if in_use; then
		since=''
	elif [ -z "$since" ] || [ "$use" != "$mark" ] || [ $((now - seen)) -gt $((every * 100 + 1000)) ] ||
		[ $((cpu - spent)) -ge $((limit * 100)) ]; then
		since=$now spent=$cpu
	elif [ $((now - since)) -ge "$limit" ]; then
		echo 1 >"$dir/ending"
		{ IFS= read -r mark <"$dir/use"; } 2>/dev/null
		[ "$use" != "$mark" ] || in_use || exit 120
		: >"$dir/ending"
		since=''
	fi
	mark=$use seen=$now
	[ "$told" = "$since" ] || echo "${since:+$((since + epoch))}" >"$dir/idle"
	told=$since
} 2>/dev/null

if [ -n "$limit" ]; then
	every=$((limit / 2000))
	[ "$every" -gt 0 ] || every=1
	[ "$every" -lt 30 ] || every=30
	read_clock
	epoch=$(($(date +%s) * 100 - now))
fi

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
	[ -z "$limit" ] || rest
	left=$((left - 1))
	[ "$left" -lt "$every" ] || left=$every
	[ -z "$limit" ] || [ -n "$since" ] || [ "$left" -lt 5 ] || left=5 # its use may end soon
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
