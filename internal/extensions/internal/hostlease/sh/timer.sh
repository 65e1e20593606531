# The timer: one shell loop per login and host that reads the leases. timer_env: variables that it needs as this script has
# them, words.

# timer_start FILE installs FILE, the text of the loop, and makes sure that a loop runs. It sets timer to what keeps it
# alive: systemd, systemd-user or session. A second loop finds the first one's lock and ends. Of scripts that begin together
# as sessions, one starts the loop: it passes its lock on.
timer_start() {
	[ "$1" = "$root/reaper.sh" ] || cmp -s "$1" "$root/reaper.sh" || { cp "$1" "$root/reaper.$$" && mv -f "$root/reaper.$$" "$root/reaper.sh"; } ||
		fail exhausted "the file $root/reaper.sh cannot be written" 'free some disk space on the host'
	timer=
	if [ -f "$root/reaper" ]; then
		IFS=' ' read -r timer_pid timer_start timer_boot timer <"$root/reaper"
		read_clock
		[ "$timer_boot" = "$boot" ] && read_stat "$timer_pid" && [ "$stat_start" = "$timer_start" ] && return 0
	fi
	timer=session
	if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1; then
		if [ "$(id -u)" = 0 ]; then
			timer_by systemd systemd-run && return 0
		elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null </dev/null; then
			timer_by systemd sudo -n systemd-run "--uid=$(id -u)" "--gid=$(id -g)" && return 0
		fi
		[ "$(loginctl show-user "$(id -un)" -p Linger 2>/dev/null </dev/null)" = Linger=yes ] &&
			timer_by systemd-user systemd-run --user && return 0
	fi
	timer=session
	if { command exec 7>>"$root/reaper.lock"; } 2>/dev/null && ! flock -n 7; then
		exec 7>&-
		return 0
	fi
	# Other open descriptors would keep the connection and the locks.
	root=$root timer=session setsid sh "$root/reaper.sh" </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 8>&- 9>&- &
	exec 7>&-
}

# timer_by NAME COMMAND… starts the loop as a transient service.
timer_by() {
	timer=$1
	shift
	set -- "$@" --quiet --collect "--setenv=HOME=$HOME" "--setenv=PATH=$PATH" "--setenv=root=$root" "--setenv=timer=$timer"
	for name in ${timer_env-} XDG_RUNTIME_DIR; do
		eval "set_to=\${$name-}"
		# shellcheck disable=SC2154
		[ -z "$set_to" ] || set -- "$@" "--setenv=$name=$set_to"
	done
	"$@" --property=KillMode=process sh "$root/reaper.sh" </dev/null >/dev/null 2>&1 8>&- 9>&-
}
