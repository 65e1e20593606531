# Looking at all that is on a host, and seeing to what must run there.

# survey sets containers and, with all=1, ids, to be answered: every sandbox that
# is here. A host without our folder is asked for containers all the same.
survey() {
	containers_of --filter label=sandboxer.id
	if [ "${all-}" = 1 ]; then
		ids=
		for entry in "$root"/sbx-*; do
			[ -d "$entry" ] && ids="$ids ${entry##*/}"
		done
	fi
	# After a reboot, or when somebody ended it, the timer's loop starts anew here.
	if [ -f "$root/reaper.sh" ]; then
		(
			fail() { exit 1; }
			timer_start "$root/reaper.sh"
		)
	fi
	if [ "${guarded-}" = 1 ]; then
		for entry in $ids; do
			use_box "$entry"
			firewall_check
		done
	fi
}
