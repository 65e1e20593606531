# Holds a sandbox still while its files are read. The manifest's key held is, from before the first container is paused,
# "yes" and those to be resumed, also while the toolbox fills a sandbox that does not run yet. Of a script that was killed,
# the host's loop or the next operation lets go.

# services_by sets found to the containers of services in a state: running but not paused, or paused.
services_by() {
	found=
	containers_of --filter "label=sandboxer.id=$id"
	while IFS='"' read -r _ _ _ _ _ _ _ service _ _ _ status _ container _; do
		[ -n "$service" ] || continue
		case $1:$status in
		paused:'Up '*'(Paused)') found="$found $container" ;;
		paused:* | running:'Up '*'(Paused)') ;;
		running:'Up '*) found="$found $container" ;;
		esac
	done <<-END
		$containers
	END
}

# freeze CONTAINER … pauses them, and thaw resumes them: false with why if one cannot be. It may have ended meanwhile.
freeze() { each_of running pause "$@"; }
thaw() { each_of paused unpause "$@"; }

each_of() {
	each_state=$1 each_verb=$2
	shift 2
	for one; do
		tries=0
		until why=$(docker "$each_verb" "$one" 2>&1 </dev/null); do
			services_by "$each_state"
			case " $found " in *" $one "*) ;; *) break ;; esac
			# On a busy machine the kernel's first freezer does not always stop all processes before runc gives up.
			case $tries:$why in
			4:*) return 1 ;;
			*'unable to freeze'*) ;;
			*) return 1 ;;
			esac
			tries=$((tries + 1))
			sleep 0.2 2>/dev/null || sleep 1
		done
	done
}

# hold_still pauses what runs. What is paused already stays so when it ends.
hold_still() {
	services_by running
	manifest_put held "yes$found"
	step holding
	# shellcheck disable=SC2086
	freeze $found || {
		held_why=$why
		move_on
		fail_docker 'a service could not be paused for the time of the copy' "$held_why"
	}
	step held
}

# move_on resumes what hold_still paused.
move_on() {
	manifest_get held
	# shellcheck disable=SC2086
	thaw ${value#yes} || warn "a service could not be resumed: $why"
	manifest_put held ''
}

# let_go does that for a script that was killed, and ends its containers of the toolbox. The lock is held.
let_go() {
	manifest_get held && [ -n "$value" ] || return 0
	toolbox_end "$id"
	move_on
}
