# Looking at all that is on a host, and seeing to what must run there.

# survey sets containers and, with all=1, ids, to be answered: every sandbox that
# is here. A host without our folder is asked for containers all the same.
survey() {
	containers_of --filter label=sandboxer.id
	if [ "${all-}" = 1 ]; then
		containers_here
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

# containers_here drops from containers what has its folder below another root: to
# other logins of this engine their sandboxes are none of ours that lost it. Compose
# notes the folder as it was given one; where root may be spelled otherwise there,
# nothing is dropped. What is dropped is in elsewhere.
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
