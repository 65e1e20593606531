# The end of a sandbox's folder, of the host root, and of a script that works on a sandbox. The place defines
#
#	remove_tree PATH   rm -rf, also for what belongs to others; false if something is left
#	root_kept          true if the root has to stay although it has no sandbox
#	release_root       removes what is kept for all sandboxes of the root

# remove_folder empties box except for its lock and, with "tombstone", the record of the end; else the folder goes as a
# whole. The caller holds the lock.
remove_folder() {
	for entry in "$box"/* "$box"/.[!.]*; do
		case ${entry##*/} in
		lock | holder | manifest) continue ;;
		lease) [ "${1-}" = tombstone ] && continue ;;
		esac
		[ -e "$entry" ] || [ -h "$entry" ] || continue
		remove_tree "$entry" || fail unavailable "the folder $entry could not be removed" "remove it on the host: sudo rm -rf $entry"
	done
	[ "${1-}" = tombstone ] && return 0
	# In one step, so that no script begins in a folder that is half gone.
	mv -- "$box" "$root/.gone-$id" 2>/dev/null && rm -rf "$root/.gone-$id"
	[ ! -e "$box" ] || fail unavailable "the folder $box could not be removed" "remove it on the host: sudo rm -rf $box"
}

# leave_root removes the host root when it has no sandbox, except for snapshots that are kept there. The host lock is held, so no other script can begin meanwhile.
leave_root() {
	glob_on # a pattern that is not looked up would find no sandbox
	for entry in "$root"/sbx-*; do
		[ -e "$entry" ] && return 0
	done
	! root_kept || return 0
	release_root
	if [ -f "$root/reaper" ]; then
		IFS=' ' read -r timer_pid timer_began timer_boot _ <"$root/reaper"
		read_clock
		if [ "$timer_pid" != "$$" ] && [ "$timer_boot" = "$boot" ] && read_stat "$timer_pid" && [ "$stat_start" = "$timer_began" ] && [ "$stat_group" = "$timer_pid" ]; then
			kill -KILL "-$timer_pid" 2>/dev/null
		fi
	fi
	for entry in "$root"/* "$root"/.[!.]*; do
		[ "$entry" = "$root/snapshots" ] || rm -rf -- "$entry"
	done
	rmdir "$root/snapshots" "$root" 2>/dev/null
	return 0
}

# end_session ends the script that holds the lock of box, with its children: the process group first, then the rest of the
# login session.
end_session() {
	read_holder
	holder_lives || return 0
	[ "$holder_group" -gt 1 ] && [ "$holder_group" != "$$" ] || return 0
	cut_off=1
	kill -TERM "-$holder_group" 2>/dev/null
	tries=0
	while holder_lives && [ "$tries" -lt 10 ]; do
		sleep 0.1 2>/dev/null || sleep 1
		tries=$((tries + 1))
	done
	kill -KILL "-$holder_group" 2>/dev/null
	for stat in /proc/[0-9]*/stat; do
		{ IFS= read -r stat_line <"$stat"; } 2>/dev/null || continue
		stat=${stat#/proc/}
		set -f
		# shellcheck disable=SC2086
		set -- ${stat_line##*) }
		set +f
		[ "$4" = "$holder_group" ] && kill -KILL "${stat%/stat}" 2>/dev/null
	done
	return 0
}
