# The lease of a sandbox: box/lease says when it ends. Within one boot the
# uptime decides, which no step of the wall clock moves; after a reboot the wall
# clock, or an uptime longer than what was left. Lines KEY=VALUE:
#   boot, end          the boot and its uptime (1/100 s) at which the sandbox ends
#   wall, remaining    the same by the wall clock (s), and what was left (1/100 s)
#   until              the deadline as the caller told it, for people
#   generation
# The manifest's key deadline has the wall clock's part of it as well: it decides
# where the lease was removed, or emptied by a loss of power.

# lease_write REMAINING UNTIL GENERATION writes the lease; REMAINING (1/100 s)
# counts from started, the uptime at which this script began.
lease_write() {
	read_clock
	lease_left=$(($1 - (uptime - started)))
	[ "$lease_left" -ge 0 ] || lease_left=0
	lease_wall=$(($(date +%s) + (lease_left + 99) / 100))
	manifest_put deadline "$lease_wall"
	printf 'boot=%s\nend=%s\nwall=%s\nremaining=%s\nuntil=%s\ngeneration=%s\n' "$boot" "$((started + $1))" \
		"$lease_wall" "$lease_left" "$2" "$3" >"$box/lease.new" && mv -f "$box/lease.new" "$box/lease" ||
		fail exhausted "the lease $box/lease cannot be written" 'free some disk space on the host'
}

# lease_left sets left, what is left of the lease in 1/100 s (at most zero when
# it is over); false when there is none, and no deadline in the manifest.
lease_left() {
	lease_boot='' lease_end='' lease_wall='' lease_remaining=''
	[ ! -f "$box/lease" ] || while IFS='=' read -r key value; do
		case $key in
		boot) lease_boot=$value ;;
		end) lease_end=$value ;;
		wall) lease_wall=$value ;;
		remaining) lease_remaining=$value ;;
		esac
	done <"$box/lease"
	read_clock
	[ -n "$lease_end" ] && [ -n "$lease_wall" ] && [ -n "$lease_remaining" ] || {
		manifest_get deadline && [ -n "$value" ] || return 1
		left=$(((value - $(date +%s)) * 100))
		return 0
	}
	if [ "$boot" = "$lease_boot" ]; then
		left=$((lease_end - uptime))
		return 0
	fi
	left=$(((lease_wall - $(date +%s)) * 100))
	[ $((lease_remaining - uptime)) -ge "$left" ] || left=$((lease_remaining - uptime))
}

# our_time sets now to the time in milliseconds since 1970 by the clock of the
# one who made the sandbox: from the manifest's pairs of clocks.
our_time() {
	read_clock
	manifest_get clock_boot
	clock_boot=$value
	manifest_get clock_caller
	clock_caller=${value:-0}
	if [ "$clock_boot" = "$boot" ] && manifest_get clock_uptime; then
		now=$((clock_caller + (uptime - value) * 10))
	elif manifest_get clock_wall; then
		now=$((clock_caller + ($(date +%s) - value) * 1000))
	else
		now=0
	fi
}
