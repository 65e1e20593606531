# Operation: wait until an existing sandbox is ready. limit: 1/100 s left for the services, and again for the time to
# settle; probe_limit: the probe's whole time, counted from the create.

use_root
use_box "$id"
need_tools
[ -d "$box" ] || fail not_found "$id does not exist on the host"
op=wait oneshot= long= expect=
lock_sandbox "$lock_wait"
case $? in
1) fail conflict "$id is busy: ${holder_op:-an operation} runs on the host" 'wait until it has ended' ;;
2) fail not_found "$id does not exist on the host" ;;
esac
on_fail() { unlock_sandbox; }
manifest_get state
case $value in
ready | waiting) ;;
expired) fail not_found "$id has ended: its time was up" ;;
*) fail not_found "$id was never finished" ;;
esac
manifest_get expect
expect=${value:-0}
manifest_get long
long=$value
manifest_get oneshot
oneshot=$value
await_services "$limit" || fail_services $?
manifest_get probe_since && {
	read_clock
	[ "$((uptime - value))" -lt 0 ] || probe_limit=$((probe_limit - (uptime - value)))
}
[ "$probe_limit" -le "$limit" ] || probe_limit=$limit
await_probe "$probe_limit"
asked=$?
[ "$asked" != 2 ] || fail_services 1
if [ "$asked" != 0 ]; then
	probed="the readiness probe did not answer: $why"
	containers_of --filter "label=sandboxer.id=$id"
	judge_services
	[ "$verdict" != failed ] || fail_services 1
	probe_words
	if [ -n "$detail" ]; then
		probed="$probed; the last lines of $probe_of"
	elif [ -n "$probe_of" ]; then
		probed="$probed; $probe_of has printed nothing"
	fi
	fail timeout "$probed" 'correct the service or its probe, or raise readiness.timeout if it only needs longer' "$detail"
fi
await_settled "$limit" || fail_services $?
note_ready
unlock_sandbox
ids=$id
answer_with ''
