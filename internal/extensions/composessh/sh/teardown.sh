# Operation: end a sandbox and remove all of it, by its id alone.

on_fail() { unlock_quietly; }

unlock_quietly() { exec 9>&- 8>&-; }

# take_over takes the lock of box: it ends a create, and waits for another removal.
take_over() {
	lock_sandbox 0 && {
		cut_off_before
		return 0
	}
	case $? in 2) return 1 ;; esac
	case $holder_op in
	create | wait | snapshot | fork) end_session ;;
	esac
	lock_sandbox "$lock_wait"
	case $? in
	0) return 0 ;;
	2) return 1 ;;
	esac
	fail conflict "$id is busy: ${holder_op:-an operation} runs on the host, process ${holder_pid:-unknown}" 'wait until it has ended'
}

refuse_foreign() {
	if manifest_get id && [ "$value" != "$id" ]; then
		fail conflict "the folder $box belongs to $value, not to $id" 'nothing was removed'
	fi
	if manifest_get account && [ "$value" != "$account" ]; then
		fail conflict "$id belongs to the account $value" 'nothing was removed'
	fi
}

# look_for_others sets to_remove to the containers of id, and fails if a stack of this name carries another id: it is not
# ours to remove.
look_for_others() {
	to_remove=
	container_rows "$id" --filter "label=com.docker.compose.project=$id"
	while IFS='"' read -r _ its_id _ its_account _ _ _ _ _ _ _ _ _ its_container _; do
		[ -n "$its_id$its_account" ] || continue
		if [ "$its_id" = "$id" ] && [ "$its_account" = "$account" ]; then
			case $its_container in *[!0-9a-f]*) ;; *) to_remove="${to_remove:+$to_remove }$its_container" ;; esac
			continue
		fi
		fail conflict "containers of the Compose project $id carry another sandbox's id or account" "look at them: docker ps -a --filter label=com.docker.compose.project=$id"
	done <<-END
		$containers
	END
}

use_root
use_box "$id"
op=teardown gone=1 begun='' ended='' released='' exits='' clock_caller='' clock_wall='' rested=0 paused_since=
read_clock
started=$uptime
need_tools
refuse_foreign
if [ -d "$box" ] && take_over; then
	gone=
	refuse_foreign
	step locked
	manifest_get started && begun=$value
	manifest_get ended && ended=$value
	manifest_get grace && grace=$value
	note_exit
	manifest_get exits && exits=$value
	manifest_get clock_caller && clock_caller=$value
	manifest_get clock_wall && clock_wall=$value
	manifest_get rested && rested=${value:-0}
	manifest_get paused && [ "$value" = 1 ] && manifest_get mode_since && paused_since=$value
fi
look_for_others
remove_objects
[ -z "$removed" ] || gone=
case $removed in
*containers*) ;;
*) same_engine || warn "$id was made on another engine than the one that docker reaches now, which holds none of its containers: look for them there (label sandboxer.id=$id)" ;;
esac
[ -n "$ended" ] || { [ -z "$begun" ] || { our_time; ended=$now; }; }
[ -z "$paused_since" ] || [ -z "$ended" ] || rested=$((rested + ended - paused_since))
if [ -d "$box" ]; then
	drop_images 30
	step released-images
	remove_folder ''
	released=' folder'
fi
if [ -d "$root" ]; then
	lock_host
	leave_root
	unlock_host
fi
was_gone=false
[ -z "$gone" ] || was_gone=true
answer "{\"gone\":$was_gone,\"removed\":\"$removed$released\",\"started\":\"$begun\",\"ended\":\"$ended\",\"exits\":$(json_string "$exits"),\"clock_caller\":\"$clock_caller\",\"clock_wall\":\"$clock_wall\",\"paused_ms\":$rested,\"warnings\":$(json_string "$warnings")}"
