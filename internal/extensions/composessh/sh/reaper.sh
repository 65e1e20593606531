# Operation: the loop of loop.sh on a Compose host.

[ -n "${DOCKER_HOST-}" ] || unset DOCKER_HOST
# The pause between two looks at the firewall (1/100 s). A login that is not root needs sudo, which keeps a log, or a
# container for each.
guard_pause=400
[ "$(id -u)" = 0 ] || guard_pause=3000

surely_gone() {
	case $removed in *containers*) ;; *) same_engine ;; esac
}

runs_on() { ours_containers "$1" && [ -n "$ours" ]; }

all_running() {
	docker_soon ps -a --filter label=sandboxer.id --format '{{.Label "sandboxer.id"}} {{.Label "com.docker.compose.project.working_dir"}}' 2>/dev/null
}

release_rest() {
	drop_images 0
	! images_named
}

# release releases the images of an expired sandbox, unless another script works on them.
release() {
	lock_sandbox 0 || return 0
	manifest_get state
	[ "$value" != expired ] || drop_images 0
	unlock_sandbox
}

# forget removes the files of secrets whose sandbox is gone.
forget() { memory_drop "$id"; }

# guard restores the rules, of all sandboxes that have any, after something on the host removed them.
guard() {
	for folder in "$root"/sbx-*; do
		[ -d "$folder" ] || continue
		use_box "${folder##*/}"
		firewall_check
	done
}

# regain lets go of a sandbox that a killed script held.
regain() {
	lock_sandbox 0 || return 0
	let_go
	unlock_sandbox
}

reaper_task() {
	case $1 in release | forget | guard | regain) "$1" ;; kept) kept_clean ;; prepared) prepared_clean ;; esac
}

look_ended() {
	manifest_get images && [ -n "$value" ] || return 1
	begin release "$id"
}

look_living() {
	! manifest_get guard_sum || [ -z "$value" ] || begin guard guard
	! manifest_get held || [ -z "$value" ] || ! flock -n "$box/lock" true 2>/dev/null </dev/null || begin regain "$id"
}

look_around() {
	memory_forgotten begin forget
	! kept_halves || begin kept kept
	! prepared_due || begin prepared prepared
	root_kept
}

pause_after() { [ "$1" != guard ] || pause=$guard_pause; }

root_removed() { memory_sweep; }

reaper_main
