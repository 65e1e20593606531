# The time limit of a command. Variables: sbx_limit and sbx_limit_up, seconds; the first may be a decimal, which not every
# sleep knows. The place defines sbx_end, which ends the command.

# sbx_watching begins a process that observes the command until USR1. Nobody hears it, and it must run to the end: TERM
# comes from a caller that gave up, HUP from a terminal that is gone.
sbx_watching() {
	sbx_over='' sbx_left='' sbx_nap=''
	trap 'sbx_over=1; [ -z "$sbx_nap" ] || kill -9 "$sbx_nap" 2>/dev/null' USR1
	trap '' TERM HUP
}

# sbx_sleep SECONDS sleeps until a trap has set sbx_over or sbx_left.
sbx_sleep() {
	sleep "$1" &
	sbx_nap=$!
	[ -z "$sbx_over$sbx_left" ] || kill -9 "$sbx_nap" 2>/dev/null
	wait "$sbx_nap"
}

# sbx_expire waits for the limit, then ends the command: 3 = it did.
sbx_expire() {
	sbx_watching
	sbx_sleep "$sbx_limit"
	sbx_slept=$?
	[ -z "$sbx_over" ] || exit 0
	if [ "$sbx_slept" != 0 ]; then
		sbx_sleep "$sbx_limit_up"
		[ -z "$sbx_over" ] || exit 0
	fi
	sbx_end
	exit 3
}
