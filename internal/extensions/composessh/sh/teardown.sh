# Operation: end a sandbox and remove all of it, by its id alone.

on_fail() { unlock_quietly; }

unlock_quietly() { exec 9>&- 8>&-; }

# take_over gets the lock of box: what makes the sandbox is ended, what removes
# it already is waited for.
take_over() {
	lock_sandbox 0 && {
		cut_off_before
		return 0
	}
	case $? in 2) return 1 ;; esac
	case $holder_op in
	create | wait) end_session ;;
	esac
	lock_sandbox "$lock_wait"
	case $? in
	0) return 0 ;;
	2) return 1 ;;
	esac
	fail conflict "$id is being worked on: ${holder_op:-an operation} runs on the host, process ${holder_pid:-unknown}" 'wait until it has ended'
}

refuse_foreign() {
	if manifest_get id && [ "$value" != "$id" ]; then
		fail conflict "the folder $box belongs to $value, not to $id" 'nothing was removed'
	fi
	if manifest_get account && [ "$value" != "$account" ]; then
		fail conflict "$id belongs to the account $value" 'nothing was removed'
	fi
}

# look_for_others sets to_remove to the containers of id, and fails where a stack of
# this name carries another id: that is not ours to remove.
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
op=teardown gone=1 begun='' ended='' released=
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
fi
look_for_others
remove_objects
[ -z "$removed" ] || gone=
case $removed in
*containers*) ;;
*) same_engine || warn "$id was made on another engine than the one that docker reaches now, which holds none of its containers: look for them there (label sandboxer.id=$id)" ;;
esac
[ -n "$ended" ] || { [ -z "$begun" ] || { our_time; ended=$now; }; }
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
answer "{\"gone\":$was_gone,\"removed\":\"$removed$released\",\"started\":\"$begun\",\"ended\":\"$ended\",\"warnings\":$(json_string "$warnings")}"
