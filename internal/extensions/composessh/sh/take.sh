# An operation on a sandbox that exists.

# take_box takes the lock of a sandbox of the account.
take_box() {
	[ -d "$box" ] || fail not_found "$id does not exist on the host"
	lock_sandbox "$lock_wait"
	case $? in
	1) fail conflict "$id is busy: ${holder_op:-an operation} runs on the host" 'wait until it has ended' ;;
	2) fail not_found "$id does not exist on the host" ;;
	esac
	on_fail() { unlock_sandbox; }
	manifest_get account || fail not_found "$id was never finished"
	[ "$value" = "$account" ] || fail conflict "$id belongs to the account $value"
}

# take_ready takes one that was ready, sets containers, and lets go of what a killed script held.
take_ready() {
	take_box
	manifest_get state
	case $value in
	ready) ;;
	expired) fail not_found "$id has ended: its time was up" ;;
	*) fail conflict "$id is not ready: it is $value" 'wait until it is ready' ;;
	esac
	lease_left && [ "$left" -gt 0 ] || [ "${mode-}" = running ] || fail not_found "$id has ended: its time was up"
	containers_of --filter "label=sandboxer.id=$id"
	[ -n "$containers" ] || fail not_found "$id has ended: its containers are gone"
	let_go
}
