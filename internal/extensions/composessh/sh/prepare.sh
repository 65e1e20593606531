# Operation: put the images of a stack on the host before a sandbox runs them. It works in box, root/prepare-KEY, which goes
# at its end; images that were built then wait for their first sandbox until prepared_time (1/100 s) is over. What a
# killed script leaves, the loop removes.

made=false stage=begun op=prepare max=0

on_fail() {
	on_fail() { :; }
	unlock_host
	[ "$stage" = begun ] || leave_box
	exec 9>&-
}

leave_box() {
	quietly drop_images 30
	quietly remove_folder ''
	quietly leave_host
}

# keep_prepared makes the built images wait; the lock of each is held meanwhile.
keep_prepared() {
	images_named || return 0
	for digest in $value; do
		lock_image "$digest" || image_fail unavailable "the image $digest is in use for too long" 'try again'
		read_clock
		printf '%s %s %s\n' "$boot" "$((uptime + prepared_time))" "${keep_images-}" >"$root/images/$digest.for.prepared" ||
			image_fail exhausted "the folder $root/images cannot be written" 'free some disk space on the host'
		unlock_image
	done
}

use_root
need_tools
if [ -z "${builds-}" ] && pulls_there; then # nothing has to be made
	answer '{}'
	exit 0
fi
use_box "$id"
read_clock
started=$uptime
claim
stage=claimed
step locked
remove_folder tombstone
check_engine
receive
timer_start "$box/reaper.sh"
open_up
pull_images
build_images
keep_prepared
step prepared
leave_box
answer '{}'
