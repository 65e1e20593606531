# Idleness: with the manifest's key idle (1/100 s), a sandbox that nobody uses for so long ends. Whoever uses it holds a
# shared lock on box/use and removes box/idle. The loop looks now and then, and keeps there, as lines KEY=VALUE, boot and
# since (an uptime, 1/100 s), cpu (what the programs had used by then, us) and since_ms (by the clock of its creator). The
# manifest's key idled says that it is ending: since when it was idle, and when that was found (ms).

# use_begin makes this script a use of box until its last process ends.
use_begin() {
	manifest_get idle && [ -n "$value" ] || return 0
	{ command exec 6>>"$box/use"; } 2>/dev/null && flock -s -w 10 6 && ! idled ||
		fail not_found "nobody used the sandbox $id for so long that it has ended"
	rm -f "$box/idle"
}

idled() { manifest_get idled && [ -n "$value" ]; }

# idle_still reports whether box, whose programs have used cpu by now, has been idle since the record in box/idle. It may
# use 1/100 of one core: limit * 10000 us / 100.
idle_still() {
	get_from "$box/idle" boot && [ "$value" = "$boot" ] || return 1
	get_from "$box/idle" cpu && [ "$cpu" -ge "$value" ] && [ $((cpu - value)) -lt $((limit * 100)) ]
}

# idle_look ends box if it was idle for long enough; a task of the loop.
idle_look() {
	{ command exec 6>>"$box/use"; } 2>/dev/null || return 0
	manifest_get idle
	limit=$value
	if ! flock -n 6 || ! manifest_get state || [ "$value" != ready ] || { manifest_get paused && [ "$value" = 1 ]; } ||
		! lock_sandbox 0 || ! idle_cpu; then
		rm -f "$box/idle"
		return 0
	fi
	our_time
	if ! idle_still; then
		printf 'boot=%s\nsince=%s\ncpu=%s\nsince_ms=%s\n' "$boot" "$uptime" "$cpu" "$now" >"$box/idle.new" && mv -f "$box/idle.new" "$box/idle"
		return 0
	fi
	get_from "$box/idle" since
	[ $((uptime - value)) -ge "$limit" ] || return 0
	get_from "$box/idle" since_ms
	manifest_put idled "$value $now"
	reap_held
}
