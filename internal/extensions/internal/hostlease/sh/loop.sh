# The loop that ends overdue sandboxes. It lives as long as a sandbox does, wakes at least every five seconds, and keeps
# nothing open between two looks. Each task is a separate process with its own limit, which is this script with task and
# task_id set: no sandbox waits for another one's hanging task.
#
# It knows leases, folders and locks. Of what runs, it knows what the place defines, and then runs reaper_main:
#
#	remove_objects     removes all that carries the label of id, and sets removed to what there was, in words; it fails
#	                   if something is left
#	surely_gone        after that: false if an empty list may not mean absence
#	cut_off_before     with the lock just taken: notes what an interrupted create leaves in doubt
#	note_exit          before that, of an overdue sandbox: notes how its own process ended, if it did
#	runs_on ID         true if something with that label runs
#	all_running        prints the ids and folders of all that runs, by lines
#	release_rest       of a sandbox that is gone: false if something of it has to be kept for later
#	reaper_task NAME   runs another task of that name
#	look_ended         for an ended sandbox in each look: begins tasks; true if it still has to be watched
#	look_living        for one that has time left, likewise
#	look_around        once in each look, likewise
#	idle_cpu           sets cpu to the CPU time that the programs of box have used (us); false if that is not known
#	pause_after ID     may set pause, the time until a task of that id begins again (1/100 s)
#	root_removed       after somebody removed the root

# No caller listens: a later look tries again.
fail() { exit 1; }
step() { :; }
op=reap account='' grace=0

# The limit of one task (1/100 s), and the number of tasks at a time.
: "${task_limit:=6000}"
tasks_max=16

# ---- tasks

# reap ends one overdue sandbox. Its remains record the end, and the names of images not yet released.
reap() {
	lock_sandbox 0 || {
		case $holder_op in
		# A script that still makes or copies an expired sandbox is ended with it.
		create | wait | snapshot | fork) ;;
		# A task of a loop that was killed meanwhile hangs.
		reap)
			holder_lives && [ $((uptime - holder_start)) -gt $((task_limit * 2)) ] || return 0
			;;
		*) return 0 ;;
		esac
		end_session
		lock_sandbox 5 || return 0
	}
	lease_left && { [ "$left" -le 0 ] || idled; } || return 0
	reap_held
}

# reap_held is reap with the lock held.
reap_held() {
	manifest_get state
	[ "$value" != expired ] || return 0
	cut_off_before
	note_exit
	remove_objects
	surely_gone || return 0
	# First what needs no room on a disk that may be full.
	remove_folder tombstone
	our_time
	manifest_put state expired ended "$now" why 'its time was up'
	unlock_sandbox
}

# adrift ends what runs on after its folder was removed: no record of its deadline is left. An orderly removal of a folder
# comes after the containers'. It makes the folder again for its lock, which a create of the same id takes too.
adrift() {
	runs_on "$id" || return 0
	mkdir "$box" 2>/dev/null || return 0
	printf '' >>"$box/lock" && abandoned
}

# strays ends what of this root ran on without its folder before the loop began.
strays() {
	listed=$(all_running) || return 0
	while IFS=' ' read -r stray stray_folder; do
		case $stray in *[!a-z0-9-]* | '') continue ;; esac
		[ "$stray_folder" = "$root/$stray" ] && [ ! -d "$stray_folder" ] || continue
		(use_box "$stray" && adrift) </dev/null
	done <<-END
		$listed
	END
}

# abandoned ends a sandbox without a deadline that no script holds: after a create that ended before it had a lease, or
# with lost records. The folder goes last, when it records nothing any more.
abandoned() {
	lock_sandbox 0 || return 0
	! lease_left || return 0
	remove_objects
	surely_gone || return 0
	release_rest || return 0
	remove_folder
}

# ---- the loop

# begin TASK ID starts a task, unless one works on that sandbox or did a moment ago. tasks has a word ID:PID:START for
# each, later ID:UPTIME of those to be retried.
tasks='' later=''
begin() {
	for entry in $tasks $later; do
		[ "${entry%%:*}" != "$2" ] || return 0
	done
	glob_off
	# shellcheck disable=SC2086
	set -- "$1" "$2" $tasks
	glob_on
	[ $# -lt $((tasks_max + 2)) ] || return 0
	task=$1 task_id=$2 root=$root timer=$timer task_limit=$task_limit setsid sh "$root/reaper.sh" </dev/null >/dev/null 2>&1 7>&- 8>&- &
	task_pid=$!
	read_stat "$task_pid" && tasks="$tasks $2:$task_pid:$stat_start"
}

# collect forgets finished tasks, and ends those that hang.
collect() {
	read_clock
	former=$later later=''
	for entry in $former; do
		[ "${entry#*:}" -le "$uptime" ] || later="$later $entry"
	done
	former=$tasks tasks=''
	for entry in $former; do
		task_pid=${entry#*:}
		task_began=${task_pid#*:} task_pid=${task_pid%%:*}
		pause=500
		if read_stat "$task_pid" && [ "$stat_start" = "$task_began" ]; then
			[ $((uptime - task_began)) -gt "$task_limit" ] || {
				tasks="$tasks $entry"
				continue
			}
			# setsid has made it a group, which also has what hangs.
			[ "$stat_group" != "$task_pid" ] || kill -KILL "-$task_pid" 2>/dev/null
			pause=$task_limit
		fi
		wait "$task_pid" 2>/dev/null
		idle_pause "${entry%%:*}"
		pause_after "${entry%%:*}"
		later="$later ${entry%%:*}:$((uptime + pause))"
	done
}

# idle_pause ID sets pause after a look for idleness, which is task idle-ID: 1/20 of the time, from one second to 30.
idle_pause() {
	case $1 in idle-*) ;; *) return 0 ;; esac
	get_from "$root/${1#idle-}/manifest" idle || return 0
	pause=$((value / 20))
	[ "$pause" -ge 100 ] || pause=100
	[ "$pause" -le 3000 ] || pause=3000
}

# look starts what is due and sets rest, the time until the next look (1/100 s), and alive, whether anything is left to
# watch. watched are the ids that it saw running.
watched=''
look() {
	rest=500 alive='' former=$watched watched=''
	for id in $former; do
		[ -d "$root/$id" ] || begin adrift "$id"
	done
	collect
	for folder in "$root"/sbx-*; do
		[ -d "$folder" ] || continue
		use_box "${folder##*/}"
		# This look sees one state of its manifest.
		held_box=$box entries_of=
		if manifest_get state && [ "$value" = expired ]; then
			look_ended && alive=1
			continue
		fi
		alive=1 watched="$watched $id"
		if ! lease_left; then
			! flock -n "$box/lock" true 2>/dev/null </dev/null || begin abandoned "$id"
		elif [ "$left" -le 0 ] || idled; then
			begin reap "$id"
		else
			! manifest_get idle || [ -z "$value" ] || begin idle "idle-$id"
			[ "$left" -ge "$rest" ] || rest=$left
			look_living
		fi
	done
	held_box=
	! look_around || alive=1
	[ -z "$tasks" ] || rest=100 alive=1
}

main() {
	[ "$root/reaper.lock" -ef /proc/self/fd/7 ] || command exec 7>>"$root/reaper.lock" || exit 0
	flock -n 7 || exit 0
	cd / || exit 0
	read_stat $$
	read_clock
	printf '%s %s %s %s\n' "$$" "$stat_start" "$boot" "$timer" >"$root/reaper.new2" && mv -f "$root/reaper.new2" "$root/reaper"
	begin strays strays
	while [ "$root/reaper.lock" -ef /proc/self/fd/7 ]; do
		look
		if [ -z "$alive" ]; then
			# A script that begins now waits for the host lock and starts a new loop.
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
	# All of root was removed: no script is left to start a task with.
	for id in $watched; do
		use_box "$id"
		[ -d "$box" ] || (runs_on "$id" && remove_objects)
	done
	root_removed
}

# reaper_main is the loop, or one of its tasks.
reaper_main() {
	check_root
	if [ -n "${task-}" ]; then
		use_box "${task_id#idle-}"
		case $task in idle) idle_look ;; reap | abandoned | adrift | strays) "$task" ;; *) reaper_task "$task" ;; esac
		exit 0
	fi
	main
	exit 0
}
