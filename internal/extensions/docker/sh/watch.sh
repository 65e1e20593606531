# The first process of a container. Nothing inside can signal it away, and everything inside ends with it: at the
# deadline, whoever else is gone. Arguments: the deadline in seconds since 1970, how long nobody may use the sandbox in
# 1/100 s ('' = for ever), then the command to run, if any. The deadline in the file lease counts more; USR1 says that
# it changed, or that a use begins. Secrets come on stdin. Variables here begin with sbx_, for a shell exports
# those that it was given: others are the command's own.
sbx_until=$1 sbx_limit=$2 sbx_dir=/.sandboxer sbx_app='' sbx_left='' sbx_every=60
shift 2
trap : USR1

# Lines PATH CONTENT, as printf %b reads it; they end with an empty one.
umask 022
while IFS=' ' read -r sbx_path sbx_content && [ -n "$sbx_path" ]; do
	printf %b "$sbx_content" >>"$sbx_path"
done
exec </dev/null
[ ! -d /run/sandboxer ] || : >/run/sandboxer/done

# read_clock sets sbx_now, the time since the machine's start in 1/100 s.
read_clock() {
	IFS=' .' read -r sbx_now sbx_cents _ </proc/uptime
	sbx_now=$((sbx_now * 100 + 1$sbx_cents - 100))
}

# read_cpu sets sbx_cpu, the time that all programs here have used (us). It fails if that is not told.
read_cpu() {
	if [ -r /sys/fs/cgroup/cpu.stat ]; then
		while IFS=' ' read -r sbx_key sbx_cpu; do
			[ "$sbx_key" != usage_usec ] || return 0
		done </sys/fs/cgroup/cpu.stat
	elif [ -r /sys/fs/cgroup/cpuacct/cpuacct.usage ]; then
		read -r sbx_cpu </sys/fs/cgroup/cpuacct/cpuacct.usage
		sbx_cpu=$((sbx_cpu / 1000))
		return 0
	fi
	return 1
}

# in_use reports whether a program is here whose parent is outside: somebody began it.
in_use() {
	for sbx_stat in /proc/[0-9]*/stat; do
		[ "$sbx_stat" != /proc/1/stat ] && read -r sbx_line 2>/dev/null <"$sbx_stat" || continue
		case ${sbx_line##*) } in
		[A-Z]' '[1-9]*) ;;
		*) return 0 ;;
		esac
	done
	return 1
}

# rest ends the sandbox if nobody has used it for so long. Programs here may use 1/100 of one core: 100 us in 1/100 s.
# Who begins a program while the file ending has something in it waits.
sbx_since='' sbx_mark='' sbx_told='' sbx_seen=0
rest() {
	read_clock
	read_cpu || exit 121
	{ IFS= read -r sbx_use <"$sbx_dir/use"; } 2>/dev/null
	if in_use; then
		sbx_since=''
	elif [ -z "$sbx_since" ] || [ "$sbx_use" != "$sbx_mark" ] || [ $((sbx_now - sbx_seen)) -gt $((sbx_every * 100 + 1000)) ] ||
		[ $((sbx_cpu - sbx_spent)) -ge $((sbx_limit * 100)) ]; then
		sbx_since=$sbx_now sbx_spent=$sbx_cpu
	elif [ $((sbx_now - sbx_since)) -ge "$sbx_limit" ]; then
		echo 1 >"$sbx_dir/ending"
		{ IFS= read -r sbx_mark <"$sbx_dir/use"; } 2>/dev/null
		[ "$sbx_use" != "$sbx_mark" ] || in_use || exit 120
		: >"$sbx_dir/ending"
		sbx_since=''
	fi
	sbx_mark=$sbx_use sbx_seen=$sbx_now
	[ "$sbx_told" = "$sbx_since" ] || echo "${sbx_since:+$((sbx_since + sbx_epoch))}" >"$sbx_dir/idle"
	sbx_told=$sbx_since
} 2>/dev/null

if [ -n "$sbx_limit" ]; then
	sbx_every=$((sbx_limit / 2000))
	[ "$sbx_every" -gt 0 ] || sbx_every=1
	[ "$sbx_every" -lt 30 ] || sbx_every=30
	read_clock
	sbx_epoch=$(($(date +%s) * 100 - sbx_now))
fi

# look sets sbx_left, the seconds to sleep: not all at once, since a machine may sleep too, and in short steps at the end.
look() {
	sbx_left=''
	{ read -r sbx_left <"$sbx_dir/lease"; } 2>/dev/null
	case $sbx_left in
	'' | *[!0-9]*) ;;
	*) sbx_until=$sbx_left ;;
	esac
	sbx_left=$((sbx_until - $(date +%s)))
	[ "$sbx_left" -gt 0 ] || exit 124
	[ -z "$sbx_limit" ] || rest
	sbx_left=$((sbx_left - 1))
	[ "$sbx_left" -lt "$sbx_every" ] || sbx_left=$sbx_every
	[ -z "$sbx_limit" ] || [ -n "$sbx_since" ] || [ "$sbx_left" -lt 5 ] || sbx_left=5 # its use may end soon
	[ "$sbx_left" -gt 0 ] || sbx_left=0.2
}

nap() { sleep "$1" 2>/dev/null || sleep 1; }

if [ $# = 0 ]; then
	while look; do
		nap "$sbx_left" &
		wait $!
	done
	exit 1
fi
[ ! -r /run/sandboxer/env ] || . /run/sandboxer/env
"$@" &
sbx_app=$!
for sbx_signal in TERM INT QUIT HUP; do
	# shellcheck disable=SC2064
	trap "kill -s $sbx_signal $sbx_app 2>/dev/null" "$sbx_signal"
done
while look; do
	(
		trap - TERM INT QUIT HUP USR1
		nap "$sbx_left"
		kill -s USR1 1
	) &
	wait "$sbx_app"
	sbx_code=$?
	kill -0 "$sbx_app" 2>/dev/null || exit "$sbx_code"
done
exit 1
