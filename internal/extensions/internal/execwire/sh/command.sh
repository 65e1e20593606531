# Operation: run the command of the arguments beside this shell, inside. Variables: sbx_mark, sbx_dir (absolute; '' = where this
# shell began), sbx_terminal (1 = there is one), those of frame.sh and watch.sh, and the function sbx_environment, which
# exports the caller's variables. With sbx_cancel=1 it ends the command of that mark. Names begin with sbx_ where a variable of
# the image could have the same: what is assigned here would reach the command.
#
# The command is in the foreground: a shell makes those in the background ignore INT and QUIT.

exec 5>&2 2>/dev/null
# Caught here, these have their own meaning for the command.
trap : HUP INT QUIT TERM PIPE

sbx_say() { say "$1" 2>&5; }

# sbx_end kills the command, beside this shell and what watches for it.
sbx_end() {
	trap '' TERM HUP USR1
	read -r sbx_watcher sbx_line </proc/self/stat
	(
		set -- "$sbx_mark" "$$" "$sbx_watcher"
		eval "$sbx_killer"
	)
}

if [ "$sbx_cancel" = 1 ]; then
	sbx_end && sbx_say '{"exit":0}'
	exit 0
fi
if [ -n "$sbx_dir" ]; then
	cd -- "$sbx_dir" || {
		sbx_say '{"refused":"folder"}'
		exit 0
	}
fi
# A process group of its own, unless that would lose the terminal.
sbx_apart=
[ -n "$sbx_terminal" ] || sbx_apart=$(command -v setsid)
sbx_timer= sbx_timed=false
if command -v sleep >/dev/null; then
	sbx_expire </dev/null >/dev/null 2>&1 5>&- &
	sbx_timer=$! sbx_timed=true
fi
sbx_say "{\"began\":1,\"timed\":$sbx_timed}"
(
	exec 2>&5 5>&-
	set -- ${sbx_apart:+"$sbx_apart"} "$@"
	sbx_environment
	SANDBOXER_EXEC=$sbx_mark
	export SANDBOXER_EXEC
	exec "$@"
)
sbx_code=$?
sbx_late=false
if [ -n "$sbx_timer" ]; then
	kill -s USR1 "$sbx_timer"
	wait "$sbx_timer"
	[ "$?" != 3 ] || sbx_late=true
fi
[ -n "$sbx_terminal" ] || say '{"output":"ended"}' 2>&1
sbx_say "{\"exit\":$sbx_code,\"timeout\":$sbx_late,\"last\":true}"
