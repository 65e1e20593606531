# Operation: move the deadline (remaining, until) or raise the generation of a
# sandbox that lives.

use_root
use_box "$id"
read_clock
started=$uptime op=change
need_tools
[ -d "$box" ] || fail not_found "$id does not exist on the host"
lock_sandbox "$lock_wait"
case $? in
1) fail conflict "$id is being worked on: ${holder_op:-an operation} runs on the host" 'wait until it has ended' ;;
2) fail not_found "$id does not exist on the host" ;;
esac
on_fail() { unlock_sandbox; }
manifest_get account || fail not_found "$id was never finished"
[ "$value" = "$account" ] || fail conflict "$id belongs to the account $value"
manifest_get state
[ "$value" != expired ] || fail not_found "$id has ended: its time was up"
lease_left && [ "$left" -gt 0 ] || fail not_found "$id has ended: its time was up"
manifest_get generation
have=${value:-0}
if [ -n "$raise" ]; then
	[ "$raise" -gt "$have" ] || fail conflict "$id has the generation $have already, not below $raise"
	manifest_put generation "$raise"
	have=$raise
fi
if [ -n "$remaining" ]; then
	containers_of --filter "label=sandboxer.id=$id"
	[ -n "$containers" ] || fail not_found "$id has ended: its containers are gone"
	lease_write "$remaining" "$until" "$have"
	timer_start "$root/reaper.sh"
fi
unlock_sandbox
answer '{}'
