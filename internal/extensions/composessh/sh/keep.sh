# Operation: find or remove a snapshot. Variables: snapshot, way (find | remove).

use_root
need_tools
kept_clean
case $way in
find)
	kept_take -s || kept_missing
	answer_kept
	;;
remove)
	if kept_take -x; then
		step taken
		mv -- "$at" "$root/snapshots/.gone-$snapshot" || fail unavailable "the snapshot $snapshot in $at could not be removed" 'look at the folder on the host'
		step gone
		rm -rf -- "$root/snapshots/.gone-$snapshot"
	fi
	exec 7>&-
	leave_kept
	answer '{}'
	;;
esac
