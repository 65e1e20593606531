# Operation: move the deadline (remaining, until) or raise the generation of a live sandbox.

use_root
use_box "$id"
read_clock
started=$uptime op=change
need_tools
take_box
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
	manifest_get entrypoint && [ -n "$value" ] && manifest_get service && while IFS='"' read -r _ _ _ _ _ _ _ one _ _ _ status _; do
		case $one:$status in "$value:Exited ("*) fail not_found "$id has ended: its entrypoint has ended" ;; esac
	done <<-END
		$containers
	END
	lease_write "$remaining" "$until" "$have"
	timer_start "$root/reaper.sh"
fi
unlock_sandbox
answer '{}'
