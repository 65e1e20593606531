# Removes docker's objects of a sandbox.

# remove_objects removes the containers, networks and volumes of id, its rules and its proxy, and confirms for each kind
# that none is left. removed lists what existed. grace: seconds that containers get to stop by themselves. to_remove:
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
			# What was interrupted had asked for objects that docker may still be making.
			cut_off='' doubt='containers networks volumes'
			sleep 1
			continue
		fi
		[ "$round" -lt 8 ] || fail_docker "what docker holds of $id could not all be removed" "$why"
		[ "$round" -lt 3 ] || sleep 1
	done
}

# remove_containers ID, remove_networks ID and remove_volumes ID stay in doubt until docker lists nothing.
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

# remove_seen KIND records that there was something of a kind, if there was.
remove_seen() {
	[ -n "$ours" ] || return 1
	doubt="$doubt $1"
	case $removed in *"$1"*) ;; *) removed="$removed $1" ;; esac
}

# remove_walls removes the walls of containers that are gone.
remove_walls() {
	# Relays with a broken connection, for which root needs no container, and what a killed script copies.
	manifest_get held
	[ "$(id -u)" = 0 ] && [ -z "$value" ] || toolbox_end "$id"
	proxy_down
	firewall_down
	memory_drop "$id"
}

# cut_off_before records what an interrupted create leaves in doubt: see remove_objects. The lock was just taken.
cut_off_before() {
	[ "$former_op" = create ] && manifest_get state && [ "$value" = making ] && cut_off=1
	return 0
}

# same_engine reports whether docker talks to the engine that made the sandbox. Only then does an empty list mean absence.
same_engine() {
	manifest_get engine_id && [ -n "$value" ] || return 0
	read_engine
	[ "$engine_id" = "$value" ]
}

# drop_images SECONDS releases the images built for id, if any, and waits at most so long for one that another script
# builds or removes. An unreleased image keeps its name.
drop_images() {
	images_named || return 0
	image_lock_wait=$1
	release_images
	unset image_lock_wait
}

# remove_tree PATH is rm -rf for files of any owner and any depth; false if something is left. It follows no link.
remove_tree() {
	rm -rf -- "$1" 2>/dev/null </dev/null || toolbox_remove_tree "$1"
	[ -e "$1" ] || [ -h "$1" ] || return 0
	flatten "$1"
	rm -rf -- "$1" 2>/dev/null </dev/null || toolbox_remove_tree "$1"
	[ ! -e "$1" ] && [ ! -h "$1" ]
}

# flatten FOLDER moves deep files of a folder to its top, for an rm that cannot handle longer paths.
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

# Each round cuts off everything at one depth. If names are too long for a path of that depth, a smaller depth follows.
# find and mv follow no link here.
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
		# Whatever is left above is no deeper than that now.
		for entry in "$flat"/* "$flat"/.[!.]*; do
			case $entry in "$flat/.flat-$round-"*) ;; *) rm -rf -- "$entry" 2>/dev/null ;; esac
		done
	done
done'

# root_kept: images are being prepared, or wait for their first sandbox.
root_kept() {
	glob_on
	for entry in "$root"/prepare-* "$root"/images/*.for.prepared; do
		[ ! -e "$entry" ] || return 0
	done
	return 1
}

# release_root removes what is kept for all sandboxes of the root.
release_root() {
	# A killed proof has left its networks.
	[ ! -e "$root/.proof/manifest" ] || deny_clean
	kept_sweep
	memory_sweep
	toolbox_release
}
