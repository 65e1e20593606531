# The loop that ends what is overdue. It lives as long as a sandbox does, wakes
# at least every five seconds, and holds nothing between two looks.

# There is nobody to tell: what fails is tried again at the next look.
fail() { exit 1; }
step() { :; }
[ -n "${DOCKER_HOST-}" ] || unset DOCKER_HOST
op=reap account='' grace=0

# reap ends one overdue sandbox, in a subshell of its own: what fails is tried
# again at the next look.
reap() {
	use_box "$1"
	lock_sandbox 0 || {
		# What still makes a sandbox whose time is up is ended with it.
		case $holder_op in create | wait) ;; *) return 0 ;; esac
		end_session
		lock_sandbox 5 || return 0
	}
	lease_left && [ "$left" -le 0 ] || return 0
	manifest_get state
	[ "$value" != expired ] || return 0
	remove_objects
	drop_images
	our_time
	manifest_put state expired ended "$now" why 'its time was up'
	remove_folder tombstone
	unlock_sandbox
}

# look reaps what is overdue and sets rest, the seconds until the next look, and
# alive, whether anything is left to watch.
look() {
	rest=500 alive=
	for entry in "$root"/sbx-*; do
		[ -d "$entry" ] || continue
		use_box "${entry##*/}"
		manifest_get state && [ "$value" = expired ] && continue
		lease_left || {
			abandoned && continue
			alive=1
			continue
		}
		alive=1
		if [ "$left" -le 0 ]; then
			(reap "$id")
			rest=100
		elif [ "$left" -lt "$rest" ]; then
			rest=$left
		fi
	done
}

# abandoned removes the folder of a create that ended before anything was made:
# no lease, and nobody holds it.
abandoned() (
	lock_sandbox 0 || exit 1
	[ ! -e "$box/lease" ] || exit 1
	remove_folder
)

main() {
	command exec 7>>"$root/reaper.lock" || exit 0
	flock -n 7 || exit 0
	cd / || exit 0
	read_stat $$
	read_clock
	printf '%s %s %s %s\n' "$$" "$stat_start" "$boot" "$timer" >"$root/reaper.new2" && mv -f "$root/reaper.new2" "$root/reaper"
	while [ "$root/reaper.lock" -ef /proc/self/fd/7 ]; do
		look
		if [ -z "$alive" ]; then
			# Whoever begins now waits for the host lock and starts a loop anew.
			lock_wait=5
			(lock_host) || continue
			lock_host
			look
			if [ -z "$alive" ]; then
				leave_root
				exit 0
			fi
			unlock_host
		fi
		sleep "$(((rest + 99) / 100))" 7>&-
	done
}

main
exit 0
