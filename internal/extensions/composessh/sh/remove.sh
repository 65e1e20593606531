# Removing what docker holds of a sandbox.

# remove_objects removes the containers, networks and volumes that carry the
# label of id, and its rules and proxy, and confirms that none is left. removed
# lists what there was. grace: seconds that containers get to end by themselves.
remove_objects() {
	removed='' round=0
	while :; do
		round=$((round + 1)) some=
		ours_containers "$id" || fail_docker 'the containers cannot be listed' "$ours"
		if [ -n "$ours" ]; then
			some=1
			case $removed in *containers*) ;; *) removed="$removed containers" ;; esac
			if [ "${grace:-0}" -gt 0 ] && [ "$round" = 1 ]; then
				# shellcheck disable=SC2086
				docker stop -t "$grace" -- $ours >/dev/null 2>&1 </dev/null
			fi
			# shellcheck disable=SC2086
			why=$(docker rm -f -v -- $ours 2>&1 </dev/null)
			step removed-containers
		fi
		if [ "$round" = 1 ]; then
			# Relays whose connection was cut; root needs no container for one.
			[ "$(id -u)" = 0 ] || toolbox_end "$id"
			proxy_down
			firewall_down
			deny_down
		fi
		ours_networks "$id" || fail_docker 'the networks cannot be listed' "$ours"
		if [ -n "$ours" ]; then
			some=1
			case $removed in *networks*) ;; *) removed="$removed networks" ;; esac
			# shellcheck disable=SC2086
			why=$(docker network rm -- $ours 2>&1 </dev/null)
			step removed-networks
		fi
		ours_volumes "$id" || fail_docker 'the volumes cannot be listed' "$ours"
		if [ -n "$ours" ]; then
			some=1
			case $removed in *volumes*) ;; *) removed="$removed volumes" ;; esac
			# shellcheck disable=SC2086
			why=$(docker volume rm -f -- $ours 2>&1 </dev/null)
		fi
		[ -n "$some" ] || return 0
		[ "$round" -lt 8 ] || fail_docker "what docker holds of $id could not all be removed" "$why"
		# What a killed client had asked for may still arrive.
		[ "$round" -lt 3 ] || sleep 1
	done
}

# drop_images releases the images that were built for id, if any were.
drop_images() {
	manifest_get images && [ -n "$value" ] || return 0
	release_images
}

# remove_folder empties box but for its lock and, with "tombstone", what tells
# of the end; else the folder goes as a whole. The caller holds the lock.
remove_folder() {
	for entry in "$box"/* "$box"/.[!.]*; do
		case ${entry##*/} in
		lock | holder | manifest) continue ;;
		lease) [ "${1-}" = tombstone ] && continue ;;
		esac
		[ -e "$entry" ] || [ -h "$entry" ] || continue
		rm -rf "$entry" 2>/dev/null </dev/null || toolbox_remove_tree "$entry"
		if [ -e "$entry" ] || [ -h "$entry" ]; then
			fail unavailable "the folder $entry could not be removed" "remove it on the host: sudo rm -rf $entry"
		fi
	done
	[ "${1-}" = tombstone ] && return 0
	# In one step, so that nobody begins in a folder that is half gone.
	mv "$box" "$root/.gone-$id" 2>/dev/null && rm -rf "$root/.gone-$id"
	[ ! -e "$box" ] || fail unavailable "the folder $box could not be removed" "remove it on the host: sudo rm -rf $box"
}

# leave_root removes the host root when no sandbox is left in it. The host lock
# is held: nobody else can begin meanwhile.
leave_root() {
	for entry in "$root"/sbx-*; do
		[ -e "$entry" ] && return 0
	done
	# A proof that was killed midway has left its networks.
	[ ! -e "$root/.proof/manifest" ] || deny_clean
	toolbox_release
	if [ -f "$root/reaper" ]; then
		IFS=' ' read -r timer_pid timer_began timer_boot _ <"$root/reaper"
		read_clock
		if [ "$timer_pid" != "$$" ] && [ "$timer_boot" = "$boot" ] && read_stat "$timer_pid" && [ "$stat_start" = "$timer_began" ] && [ "$stat_group" = "$timer_pid" ]; then
			kill -KILL "-$timer_pid" 2>/dev/null
		fi
	fi
	rm -rf "$root"
}

# end_session ends the script that holds the lock of box, with its children:
# the process group first, then what is left of the login session.
end_session() {
	read_holder
	holder_lives || return 0
	[ "$holder_group" -gt 1 ] && [ "$holder_group" != "$$" ] || return 0
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
