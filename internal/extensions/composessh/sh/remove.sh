# Removing what docker holds of a sandbox.

# remove_objects removes the containers, networks and volumes of id, its rules and
# its proxy, and confirms of each kind that none is left. removed lists what there
# was. grace: seconds that containers get to end by themselves. to_remove:
# containers that the caller has listed with the lock held, if any.
remove_objects() {
	removed='' round=0 doubt='containers networks volumes'
	while :; do
		round=$((round + 1)) doubted=$doubt doubt=
		for kind in $doubted; do
			"remove_$kind" "$id"
			[ "$round$kind" != 1containers ] || remove_walls
		done
		if [ -z "$doubt" ]; then
			[ -n "${cut_off-}" ] || return 0
			# What was cut off had asked for things that docker may still be making.
			cut_off='' doubt='containers networks volumes'
			sleep 1
			continue
		fi
		[ "$round" -lt 8 ] || fail_docker "what docker holds of $id could not all be removed" "$why"
		[ "$round" -lt 3 ] || sleep 1
	done
}

# remove_containers ID, remove_networks ID and remove_volumes ID leave doubt until
# docker lists nothing.
remove_containers() {
	if [ -n "${to_remove-}" ]; then
		ours=$to_remove to_remove=
	else
		ours_containers "$1" || fail_docker 'the containers cannot be listed' "$ours"
	fi
	remove_seen containers || return 0
	if [ "${grace:-0}" -gt 0 ] && [ "$round" = 1 ]; then
		# shellcheck disable=SC2086
		docker stop -t "$grace" -- $ours >/dev/null 2>&1 </dev/null
	fi
	# shellcheck disable=SC2086
	why=$(docker rm -f -v -- $ours 2>&1 </dev/null)
	step removed-containers
}

remove_networks() {
	ours_networks "$1" || fail_docker 'the networks cannot be listed' "$ours"
	remove_seen networks || return 0
	# shellcheck disable=SC2086
	why=$(docker network rm -- $ours 2>&1 </dev/null)
	step removed-networks
}

remove_volumes() {
	ours_volumes "$1" || fail_docker 'the volumes cannot be listed' "$ours"
	remove_seen volumes || return 0
	# shellcheck disable=SC2086
	why=$(docker volume rm -f -- $ours 2>&1 </dev/null)
}

# remove_seen KIND notes that there was something of a kind, if there was.
remove_seen() {
	[ -n "$ours" ] || return 1
	doubt="$doubt $1"
	case $removed in *"$1"*) ;; *) removed="$removed $1" ;; esac
}

# remove_walls takes away what stands around containers that went.
remove_walls() {
	# Relays whose connection was cut; root needs no container for one.
	[ "$(id -u)" = 0 ] || toolbox_end "$id"
	proxy_down
	firewall_down
	memory_drop "$id"
}

# cut_off_before notes what a former create that nobody ended in order leaves in
# doubt: see remove_objects. The lock was just taken.
cut_off_before() {
	[ "$former_op" = create ] && manifest_get state && [ "$value" = making ] && cut_off=1
	return 0
}

# same_engine reports whether docker talks to the engine that the sandbox was made
# on. Nothing listed means nothing there only then.
same_engine() {
	manifest_get engine_id && [ -n "$value" ] || return 0
	read_engine
	[ "$engine_id" = "$value" ]
}

# drop_images SECONDS releases the images that were built for id, if any were, and
# waits at most so long for one that somebody builds or removes. What is not
# released stays named.
drop_images() {
	images_named || return 0
	image_lock_wait=$1
	release_images
	unset image_lock_wait
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
		remove_tree "$entry" || fail unavailable "the folder $entry could not be removed" "remove it on the host: sudo rm -rf $entry"
	done
	[ "${1-}" = tombstone ] && return 0
	# In one step, so that nobody begins in a folder that is half gone.
	mv -- "$box" "$root/.gone-$id" 2>/dev/null && rm -rf "$root/.gone-$id"
	[ ! -e "$box" ] || fail unavailable "the folder $box could not be removed" "remove it on the host: sudo rm -rf $box"
}

# remove_tree PATH is rm -rf, whoever made what is in it and however deep it is;
# false when something is left. It follows no link.
remove_tree() {
	rm -rf -- "$1" 2>/dev/null </dev/null || toolbox_remove_tree "$1"
	[ -e "$1" ] || [ -h "$1" ] || return 0
	flatten "$1"
	rm -rf -- "$1" 2>/dev/null </dev/null || toolbox_remove_tree "$1"
	[ ! -e "$1" ] && [ ! -h "$1" ]
}

# flatten FOLDER brings what is deep in a folder up to its top, for an rm that
# cannot go as deep as a path is long.
flatten() {
	[ -d "$1" ] && [ ! -h "$1" ] || return 0
	if [ "$(id -u)" = 0 ]; then
		sh -c "$flatten_job" sh "$1" </dev/null >/dev/null 2>&1
	else
		flat_tree=$(printf '%s' "$1" | sed 's/"/""/g')
		toolbox_run --mount "type=bind,\"src=$flat_tree\",dst=/tree" --cap-add DAC_OVERRIDE --cap-add FOWNER -- \
			sh -c "$flatten_job" sh /tree </dev/null >/dev/null 2>&1
	fi
}

# Each round cuts off what is at one depth. Where names are so long that a path of
# that depth cannot be, a smaller depth follows. find and mv follow no link here.
# shellcheck disable=SC2016
flatten_job='
cd -P -- "$1" || exit
flat=$(pwd -P) round=0
export flat
for depth in 300 60 12; do
	while [ "$round" -lt 3000 ]; do
		round=$((round + 1))
		found=$(round=$round find "$flat" -mindepth "$depth" -maxdepth "$depth" -type d -exec sh -c "
			i=0
			for d; do i=\$((i + 1)); mv -- \"\$d\" \"\$flat/.flat-\$round-\$\$-\$i\" && echo moved; done" sh {} + 2>/dev/null)
		[ -n "$found" ] || break
		# What was cut off from is no deeper than that now.
		for entry in "$flat"/* "$flat"/.[!.]*; do
			case $entry in "$flat/.flat-$round-"*) ;; *) rm -rf -- "$entry" 2>/dev/null ;; esac
		done
	done
done'

# leave_root removes the host root when no sandbox is left in it. The host lock
# is held: nobody else can begin meanwhile.
leave_root() {
	glob_on # a pattern that is not looked up would find no sandbox
	for entry in "$root"/sbx-*; do
		[ -e "$entry" ] && return 0
	done
	# A proof that was killed midway has left its networks.
	[ ! -e "$root/.proof/manifest" ] || deny_clean
	memory_sweep
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
