# The lease of a sandbox: box/lease has its deadline. Within one boot the uptime decides, which no step of the wall clock
# moves; after a reboot the wall clock, or an uptime beyond what was left. Lines KEY=VALUE:
#   boot, end          the boot and its uptime (1/100 s) at the deadline
#   wall, remaining    the deadline by the wall clock (s), and the time left when written (1/100 s)
#   until              the deadline as given by the caller, for people
#   generation
# The last line shows that the file is complete. The manifest's key deadline repeats boot, end, wall, remaining and until
# as words: it decides if the lease was removed, or truncated by a loss of power.

# lease_write REMAINING UNTIL GENERATION [KEY VALUE …] writes the lease, and these keys of the manifest with it; REMAINING
# (1/100 s) counts from started, the uptime at which this script began. lease_clock is the time (s) by the wall clock if the
# caller has just read it. On a full disk both stay as they were.
lease_write() {
	read_clock
	lease_left=$(($1 - (uptime - started)))
	[ "$lease_left" -ge 0 ] || lease_left=0
	lease_wall=$((${lease_clock:-$(date +%s)} + (lease_left + 99) / 100))
	printf 'boot=%s\nend=%s\nwall=%s\nremaining=%s\nuntil=%s\ngeneration=%s\n' "$boot" "$((started + $1))" "$lease_wall" "$lease_left" "$2" "$3" >"$box/lease.new" || {
		rm -f "$box/lease.new"
		fail exhausted "the lease $box/lease cannot be written" 'free some disk space on the host'
	}
	lease_words="$boot $((started + $1)) $lease_wall $lease_left $2"
	shift 3
	manifest_put "$@" deadline "$lease_words"
	mv -f "$box/lease.new" "$box/lease" || fail unavailable "the lease $box/lease cannot be put in place" 'check the disk, and the rights of the login there'
}

# lease_left sets left, the rest of the lease in 1/100 s (zero or less = over); false if there is neither a lease nor a
# deadline in the manifest.
lease_left() {
	lease_read || {
		manifest_get deadline
		IFS=' ' read -r lease_boot lease_end lease_wall lease_remaining _ <<-END
			$value
		END
		lease_whole || return 1
	}
	read_clock
	if [ "$boot" = "$lease_boot" ]; then
		left=$((lease_end - uptime))
		return 0
	fi
	left=$(((lease_wall - $(date +%s)) * 100))
	[ $((lease_remaining - uptime)) -ge "$left" ] || left=$((lease_remaining - uptime))
}

# lease_read sets lease_boot, lease_end, lease_wall and lease_remaining; false if the file is missing or incomplete.
lease_read() {
	lease_boot='' lease_end='' lease_wall='' lease_remaining='' lease_last=''
	[ -f "$box/lease" ] || return 1
	while IFS='=' read -r key value; do
		case $key in
		boot) lease_boot=$value ;;
		end) lease_end=$value ;;
		wall) lease_wall=$value ;;
		remaining) lease_remaining=$value ;;
		generation) lease_last=1 ;;
		esac
	done <"$box/lease"
	[ -n "$lease_last" ] && lease_whole
}

# lease_whole reports whether the values are numbers: arithmetic on anything else would end the shell, and with it the
# loop that ends all sandboxes.
lease_whole() {
	for number in "$lease_end" "$lease_wall" "$lease_remaining"; do
		case $number in '' | *[!0-9]* | ????????????????*) return 1 ;; esac
	done
}

# our_time sets now to the time in milliseconds since 1970 by the clock of the sandbox's creator, from the manifest's
# pairs of clocks.
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
