# Operation: pause or resume a sandbox. Variables: mode (paused | running); for running also remaining and until, its
# deadline. The manifest's keys: paused (1 from before the first container is paused until after the last one runs
# again), mode_since, when that was complete, and rested, how long earlier pauses were, in milliseconds.

pause_all() {
	manifest_get paused && [ "$value" = 1 ] || manifest_put paused 1 mode_since ''
	step pausing
	services_by running
	# shellcheck disable=SC2086
	freeze $found || refuse_pause "$why"
	step paused
	manifest_get mode_since && [ -n "$value" ] && return 0
	our_time
	manifest_put mode_since "$now"
}

# refuse_pause WHY lets everything run again.
refuse_pause() {
	services_by paused
	# shellcheck disable=SC2086
	[ -z "$found" ] || docker unpause $found >/dev/null 2>&1 </dev/null
	manifest_put paused ''
	fail_docker 'a service could not be paused' "$1"
}

resume_all() {
	manifest_get generation
	lease_write "$remaining" "$until" "${value:-0}"
	timer_start "$root/reaper.sh"
	manifest_get paused && [ "$value" = 1 ] || return 0
	step resuming
	services_by paused
	# shellcheck disable=SC2086
	thaw $found || fail_docker 'a service could not be resumed' "$why"
	step resumed
	rm -f "$box/idle"
	our_time
	manifest_get mode_since
	since=${value:-$now}
	manifest_get rested
	manifest_put paused '' mode_since "$now" rested "$((${value:-0} + now - since))"
}

use_root
use_box "$id"
read_clock
started=$uptime op=pause
need_tools
take_ready
case $mode in
paused) pause_all ;;
running) resume_all ;;
esac
containers_of --filter "label=sandboxer.id=$id"
unlock_sandbox
ids=$id
answer_with ''
