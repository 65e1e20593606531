# Looks at everything on a host, and restarts what must run there.

# survey sets containers and, with all=1, ids for the answer: every sandbox on the host. It asks for containers even on a
# host without our folder.
survey() {
	containers_of --filter label=sandboxer.id
	if [ "${all-}" = 1 ]; then
		containers_here
		ids=
		for entry in "$root"/sbx-*; do
			[ -d "$entry" ] && ids="$ids ${entry##*/}"
		done
	fi
	# After a reboot, or if somebody ended it, the timer's loop restarts here.
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

# containers_here drops from containers those with a folder below another root: sandboxes of other logins of this engine
# are not ours. Compose records the folder as it was given; if the spelling of root may differ, nothing is dropped. The
# dropped ones are in elsewhere.
containers_here() {
	elsewhere=
	case $root in *[!A-Za-z0-9_./@+=:,~\ -]* | *//* | */./* | */../* | */. | */..) return 0 ;; esac
	here=
	glob_off
	IFS='
'
	for its_row in $containers; do
		its_id=${its_row#'["'}
		its_id=${its_id%%'"'*}
		its_row=${its_row%,}
		case $its_row in
		*",\"$root/$its_id\"]") ;;
		*)
			[ -d "$root/$its_id" ] || {
				elsewhere="${elsewhere:+$elsewhere,}$its_row"
				continue
			}
			;;
		esac
		here="${here:+$here,
}$its_row"
	done
	IFS=$blanks
	glob_on
	containers=$here
}
