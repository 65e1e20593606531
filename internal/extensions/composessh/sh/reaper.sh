# The loop that ends what is overdue. It lives as long as a sandbox does, wakes
# at least every five seconds, and holds nothing between two looks. Whatever may
# hang, each ending has a process of its own, which is this script with task and
# task_id set, and an end of its own: no sandbox waits for another one's.

# There is nobody to tell: what fails is tried again at a later look.
fail() { exit 1; }
step() { :; }
[ -n "${DOCKER_HOST-}" ] || unset DOCKER_HOST
op=reap account='' grace=0

# How long one task may take (1/100 s), and how many there are at a time.
: "${task_limit:=6000}"
tasks_max=16
# The pause between two looks at the firewall (1/100 s). Who is not root needs
# sudo, which keeps a log, or a container for each.
guard_pause=400
[ "$(id -u)" = 0 ] || guard_pause=3000

# ---- tasks

# reap ends one overdue sandbox. What is left of it tells of the end, and names
# images that are not released yet.
reap() {
	lock_sandbox 0 || {
		case $holder_op in
		# What still makes a sandbox whose time is up is ended with it.
		create | wait) ;;
		# One of a loop that was killed meanwhile hangs.
		reap)
			holder_lives && [ $((uptime - holder_start)) -gt $((task_limit * 2)) ] || return 0
			;;
		*) return 0 ;;
		esac
		end_session
		lock_sandbox 5 || return 0
	}
	lease_left && [ "$left" -le 0 ] || return 0
	manifest_get state
	[ "$value" != expired ] || return 0
	cut_off_before
	remove_objects
	case $removed in *containers*) ;; *) same_engine || return 0 ;; esac
	# First what needs no room on a disk that may be full.
	remove_folder tombstone
	our_time
	manifest_put state expired ended "$now" why 'its time was up'
	unlock_sandbox
}

# adrift ends what runs on although its folder was removed: nothing tells its end
# any more. Who removes a folder in order has removed the containers before. The
# folder is made again for its lock, which a create of the same id takes too.
adrift() {
	ours_containers "$id" && [ -n "$ours" ] || return 0
	mkdir "$box" 2>/dev/null || return 0
	printf '' >>"$box/lock" && abandoned
}

# strays ends what of this root ran on without its folder before the loop began.
strays() {
	listed=$(docker_soon ps -a --filter label=sandboxer.id --format '{{.Label "sandboxer.id"}} {{.Label "com.docker.compose.project.working_dir"}}' 2>/dev/null) || return 0
	while IFS=' ' read -r stray stray_folder; do
		case $stray in *[!a-z0-9-]* | '') continue ;; esac
		[ "$stray_folder" = "$root/$stray" ] && [ ! -d "$stray_folder" ] || continue
		(use_box "$stray" && adrift) </dev/null
	done <<-END
		$listed
	END
}

# release takes the images of a sandbox that has expired, if nobody is at them.
release() {
	lock_sandbox 0 || return 0
	manifest_get state
	[ "$value" != expired ] || drop_images 0
	unlock_sandbox
}

# abandoned ends what nothing tells the end of, and nobody holds: a create that
# ended before it had a lease, or one whose records were lost. The folder goes
# last, with nothing left that it is the record of.
abandoned() {
	lock_sandbox 0 || return 0
	! lease_left || return 0
	remove_objects
	case $removed in *containers*) ;; *) same_engine || return 0 ;; esac
	drop_images 0
	! images_named || return 0
	remove_folder
}

# forget drops the files of secrets that belong to no sandbox any more.
forget() { memory_drop "$id"; }

# guard puts back rules that something on the host took away, of all sandboxes
# that have any.
guard() {
	for folder in "$root"/sbx-*; do
		[ -d "$folder" ] || continue
		use_box "${folder##*/}"
		firewall_check
	done
}

# ---- the loop

# begin TASK ID starts a task, unless one is at that sandbox or was a moment ago.
# tasks has a word ID:PID:START for each, later ID:UPTIME of what is tried again.
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

# collect forgets the tasks that have ended, and ends those that hang.
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
			# setsid has made it a group of its own, which holds what hangs too.
			[ "$stat_group" != "$task_pid" ] || kill -KILL "-$task_pid" 2>/dev/null
			pause=$task_limit
		fi
		wait "$task_pid" 2>/dev/null
		case $entry in guard:*) pause=$guard_pause ;; esac
		later="$later ${entry%%:*}:$((uptime + pause))"
	done
}

# look begins what is to be done and sets rest, the seconds/100 until the next
# look, and alive, whether anything is left to watch. watched are the ids of those
# that it saw running.
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
		if manifest_get state && [ "$value" = expired ]; then
			manifest_get images && [ -n "$value" ] || continue
			alive=1
			begin release "$id"
			continue
		fi
		alive=1 watched="$watched $id"
		if ! lease_left; then
			! flock -n "$box/lock" true 2>/dev/null </dev/null || begin abandoned "$id"
		elif [ "$left" -le 0 ]; then
			begin reap "$id"
		else
			[ "$left" -ge "$rest" ] || rest=$left
			! manifest_get guard_sum || [ -z "$value" ] || begin guard guard
		fi
	done
	memory_forgotten begin forget
	[ -z "$tasks" ] || rest=100 alive=1
}

main() {
	command exec 7>>"$root/reaper.lock" || exit 0
	flock -n 7 || exit 0
	cd / || exit 0
	read_stat $$
	read_clock
	printf '%s %s %s %s\n' "$$" "$stat_start" "$boot" "$timer" >"$root/reaper.new2" && mv -f "$root/reaper.new2" "$root/reaper"
	begin strays strays
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
	# All of root was removed: there is no script left to begin a task with.
	for id in $watched; do
		use_box "$id"
		[ -d "$box" ] || (ours_containers "$id" && [ -n "$ours" ] && remove_objects)
	done
	memory_sweep # somebody removed the root
}

check_root
if [ -n "${task-}" ]; then
	use_box "$task_id"
	case $task in reap | release | abandoned | adrift | forget | guard | strays) "$task" ;; esac
	exit 0
fi
main
exit 0
