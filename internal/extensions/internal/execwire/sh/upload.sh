# Operation: begins the command of sbx_argv, unless it has begun, and tells what is new of it. The script lies in the folder
# that has the command's input as in, and gets its output as out and err and its exit code as exit. Arguments: sbx_channel's
# nonce, what is known of out and of err, and the most to tell of each, in bytes. It waits a while for news, puts them into more
# and prints the nonce, the end of out's and of err's news there, and the exit code: - before the end, ? if what watches over the
# command is gone, as after a restart of the sandbox.
#
# The command gets a session of its own and outlives this shell. A shell ignores INT and QUIT for what it starts in the
# background, so the command stands in a pipeline in the foreground, whose other half ends the shell.

umask 022
sbx_room=${0%/*}
if [ "$1" = begin ]; then
	sbx_h=$(printf '%b.' "$sbx_argv")
	eval "set -- ${sbx_h%.}"
	sbx_apart=$(command -v setsid)
	set -- ${sbx_apart:+"$sbx_apart"} /bin/sh -c 'sbx_room=$1
		shift
		exec 5>&2 2>/dev/null
		echo "$$" >"$sbx_room/pid"
		rm -f "$sbx_room/in"
		"$@" 2>&5 5>&-
		echo "$?" >"$sbx_room/code"
		mv "$sbx_room/code" "$sbx_room/exit"' sh "$sbx_room" "$@"
	"$@" <"$sbx_room/in" >"$sbx_room/out" 2>"$sbx_room/err" | kill -s KILL "$$"
	exit
fi
for sbx_tool in tail head wc sleep mkdir mv rm; do
	command -v "$sbx_tool" >/dev/null || exit 98
done
if mkdir "$sbx_room/begun" 2>/dev/null; then
	: >"$sbx_room/out"
	: >"$sbx_room/err"
	{ /bin/sh "$0" begin </dev/null >/dev/null; } 2>/dev/null
fi
cd -- "$sbx_room" || exit 99
sbx_size() { echo "$(($(wc -c <"$1")))"; }
# Another process may have the number by now, so its command line must name the folder.
sbx_gone() {
	{ [ ! -e exit ] && read -r sbx_pid <pid && [ -r /proc/self/cmdline ]; } 2>/dev/null || return 1
	case $(head -c 1000 "/proc/$sbx_pid/cmdline" 2>/dev/null) in
	*"$sbx_room"*) return 1 ;;
	esac
	[ ! -e exit ]
}
sbx_round=0
! sbx_gone || sbx_round=80
while [ ! -e exit ] && [ "$sbx_round" -lt 80 ] && [ "$(sbx_size out)" -le "$2" ] && [ "$(sbx_size err)" -le "$3" ]; do
	sbx_round=$((sbx_round + 1))
	if [ "$sbx_round" -lt 20 ]; then
		sleep 0.02 2>/dev/null || sleep 1
	else
		sleep 0.25 2>/dev/null || sleep 1
	fi
done
sbx_code=-
! sbx_gone || sbx_code=?
[ ! -e exit ] || read -r sbx_code <exit
tail -c "+$(($2 + 1))" out | head -c "$4" >more
sbx_first=$(sbx_size more)
tail -c "+$(($3 + 1))" err | head -c "$4" >>more
echo "$1 $sbx_first $(sbx_size more) $sbx_code"
