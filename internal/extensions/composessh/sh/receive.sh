# How a script takes what its caller sends: claim makes a folder of the root its own, receive unpacks the payload there.

# claim makes box, unless the limit of sandboxes max is reached (0 = none), and takes its lock.
claim() {
	while :; do
		lock_host
		if [ ! -d "$box" ]; then
			count=0
			[ "$max" = 0 ] || count_live
			if [ "$max" -gt 0 ] && [ "$count" -ge "$max" ]; then
				leave_root
				fail exhausted "the host holds $count sandboxes, and its limit is $max" 'destroy some, raise capacity.max_sandboxes of the host, or use another host'
			fi
			mkdir -m 0700 "$box" 2>/dev/null || {
				leave_root
				fail exhausted "the folder $box cannot be created" 'check the disk of the host'
			}
		fi
		printf '' >>"$box/lock" || {
			unlock_host
			rmdir "$box" 2>/dev/null
			fail exhausted "the file $box/lock cannot be written" 'free some disk space on the host'
		}
		unlock_host
		lock_sandbox "$lock_wait"
		case $? in
		0) return 0 ;;
		1) fail conflict "$id is busy: ${holder_op:-an operation} runs on the host" 'wait until it has ended' ;;
		esac
	done
}

# leave_host removes the host root if nothing is in it.
leave_host() {
	lock_wait=5
	lock_host
	leave_root
}

# receive takes the payload, which has the modes that its files are to have, with exactly the announced length and digest, and waits for the caller to confirm that it
# is still there.
receive() {
	head -c "$payload_size" >"$box/payload" 2>/dev/null || fail exhausted "the payload cannot be stored in $box" 'free some disk space on the host'
	digest=
	! command -v sha256sum >/dev/null 2>&1 || digest=$(sha256sum <"$box/payload")
	[ "${digest%% *}" = "$payload_digest" ] || {
		[ "$(($(wc -c <"$box/payload")))" = "$payload_size" ] || fail interrupted 'the payload did not arrive completely' 'try again'
		[ -z "$digest" ] || fail interrupted 'the payload arrived damaged' 'try again'
	}
	(umask 0 && tar -xf "$box/payload" -C "$box") 2>"$box/tar.log" </dev/null || fail exhausted "the payload cannot be unpacked in $box: $(tail -n 1 "$box/tar.log")" 'free some disk space on the host'
	rm -f "$box/payload" "$box/tar.log"
	step filled
	[ -z "${origin-}" ] || origin_get
	progress commit
	IFS= read -r go || go=
	[ "$go" = go ] || fail interrupted 'the caller disconnected before anything was started' 'try again'
}

# open_up makes the workspace if none was sent. Like one that was, it is open to all users of the containers; the folder
# around it is closed to everybody else on the host.
open_up() { [ -d "$box/workspace" ] || mkdir -m 0777 "$box/workspace"; }
