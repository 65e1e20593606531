# Operation: create a sandbox. Everything before "commit" is undone if it fails or the caller goes away; after it the
# script runs to its end alone.

made=false stage=begun op=create

# on_fail KIND undoes a failed create. After a service's own failure the sandbox stays until it is torn down, so that
# people can inspect it.
on_fail() {
	on_fail() { :; }
	unlock_host
	case $stage:$1 in
	begun:* | adopting:*) ;;
	*:service_*)
		made=true
		quietly manifest_put state failed why "$2"
		;;
	*)
		made=true
		if [ "$stage" != claimed ]; then
			quietly remove_objects || return 0
			quietly drop_images 30
		fi
		quietly remove_folder ''
		[ ! -e "$box" ] || return 0
		made=false
		quietly leave_host
		;;
	esac
	exec 9>&-
}

# count_live sets count to the number of sandboxes that have not expired.
count_live() {
	for entry in "$root"/sbx-*; do
		[ -d "$entry" ] || continue
		get_from "$entry/manifest" state && [ "$value" = expired ] && continue
		count=$((count + 1))
	done
}

# settle_former decides about an existing sandbox of the id: it is the one asked for, it belongs to somebody else, or it
# gives way.
settle_former() {
	if manifest_get account && [ "$value" != "$account" ]; then
		fail conflict "$id belongs to the account $value"
	fi
	if manifest_get generation; then
		[ "$value" -le "$generation" ] || fail conflict "$id was taken over: its generation is $value, not $generation"
		former=$value
		manifest_get state
		former_state=$value
		if [ "$former" = "$generation" ] && { [ "$former_state" = ready ] || [ "$former_state" = waiting ]; } && lease_left && [ "$left" -gt 0 ]; then
			containers_of --filter "label=sandboxer.id=$id"
			judge_services
			if [ "$verdict" = ready ] || { [ "$verdict" = wait ] && [ "$former_state" = waiting ]; }; then
				adopt "$former_state"
				return 0
			fi
		fi
		remove_objects
		drop_images 30
	else
		stage=claimed
		containers_before
		refuse_containers
		[ -z "$containers" ] || remove_objects
	fi
	for entry in "$box"/*; do
		case ${entry##*/} in lock | holder) continue ;; esac
		[ -e "$entry" ] || [ -h "$entry" ] || continue
		remove_tree "$entry" || fail unavailable "the folder $entry could not be removed" "remove it on the host: sudo rm -rf $entry"
	done
	stage=claimed
}

# containers_before sets containers to those of this id, which has no record. A list at most three seconds old suffices:
# scripts of this id that made some left a record, or began long ago.
containers_before() {
	seen_lately ids || {
		seen=$(docker_soon ps -a --no-trunc --filter label=sandboxer.id --format '{{.Label "sandboxer.id"}}' 2>&1) ||
			fail_docker 'the containers cannot be listed' "$seen"
		see_lately ids
	}
	case "
$seen
" in *"
$id
"*) containers_of --filter "label=sandboxer.id=$id" ;; *) containers= ;; esac
}

# refuse_containers fails if containers of this id belong to somebody else: without a record only their label says so.
refuse_containers() {
	glob_off
	IFS='
'
	# shellcheck disable=SC2086
	set -- $containers
	IFS=$blanks
	glob_on
	for its_line; do
		its_account=${its_line#*'","'}
		its_account=${its_account%%'"'*}
		[ "$its_account" = "$account" ] || fail conflict "containers of $id belong to the account $its_account" "look at them: docker ps -a --filter label=sandboxer.id=$id"
	done
}

# adopt STATE takes over what an earlier call made, and makes sure that a timer runs.
adopt() {
	stage=adopting made=true adopted=true
	timer_start "$root/reaper.sh"
	[ "$1" = ready ] || stage=up
}

# finish waits until the stack is ready, records that and answers.
finish() {
	if [ "$stage" != adopting ]; then
		limit_left
		await_services "$limit_rest" || fail_services $?
		hand_over
		limit_left
		probe_since=$uptime
		[ "$probe_limit" -lt "$limit_rest" ] || probe_limit=$limit_rest
		await_probe "$probe_limit"
		case $? in
		0)
			[ -n "${probe_kind-}" ] || await_looked=1
			limit_left
			await_settled "$limit_rest" || fail_services $?
			note_ready
			;;
		2) fail_services 1 ;;
		*) manifest_put running "$running" probe_since "$probe_since" ;;
		esac
		step ready
	fi
	unlock_sandbox
	ids=$id
	json_text "${deny_proof-}"
	proof=$json
	json_text "${noted-}"
	answer_with "\"adopted\":$adopted,\"deny_proof\":$proof,\"engine_seen\":$json,"
	exit 0
}

# record starts the timer, and writes manifest and lease, which it reads. The timer leaves alone what is locked and has
# neither yet.
record() {
	timer_start "$box/reaper.sh"
	read_clock
	lease_clock=$(date +%s)
	lease_write "$remaining" "$until" "$generation" version 1 id "$id" account "$account" generation "$generation" spec_hash "$spec_hash" name "$name" host "$host" state making \
		service "$service_default" mount "$mount" access "$access" mode "$mode" networks "$networks" expect "$expect" long "$long" oneshot "$oneshot" jobs "$jobs" joins "$joins" \
		publish "$publish" entrypoint "$entrypoint" clock_caller "$((now_ms + (uptime - started) * 10))" clock_uptime "$uptime" clock_boot "$boot" clock_wall "$lease_clock" \
		grace "$grace" engine "$engine" engine_id "$engine_id" idle "$idle" timer "$timer"
	stage=recorded
	step recorded
}

# limit_left sets limit_rest to the rest of limit in 1/100 s, at least one second.
limit_left() {
	read_clock
	limit_rest=$((limit * 100 - (uptime - started)))
	[ "$limit_rest" -ge 100 ] || limit_rest=100
}

# up starts the stack with its secrets, within the rest of limit.
up() {
	SBX_WORKSPACE=$box/workspace SBX_BUNDLE=$box/bundle
	export SBX_WORKSPACE SBX_BUNDLE
	# shellcheck disable=SC2086
	[ -z "$secret_vars" ] || export $secret_vars
	memory_put
	unset COMPOSE_FILE COMPOSE_PROFILES COMPOSE_PROJECT_NAME COMPOSE_ENV_FILES COMPOSE_PATH_SEPARATOR
	model=$box/model.json
	attempt=1
	while :; do
		compose_up
		[ "$up_code" != 0 ] || break
		# Somebody else on this engine took the subnet first.
		case $(tail -c 4000 "$box/up.log") in
		*'Pool overlaps'* | *'pool overlaps'* | *'invalid pool request'*) ;;
		*) break ;;
		esac
		[ "$attempt" -lt 6 ] || break
		attempt=$((attempt + 1))
		subnets_avoid="${subnets_avoid-} $chosen"
		remove_objects
		allocate
		memory_put
	done
	# shellcheck disable=SC2086
	[ -z "$secret_vars" ] || unset $secret_vars
	secret_files=
	step up
	[ "$up_code" != 0 ] || return 0
	[ "$up_code" != 124 ] || fail timeout "the stack was not up after $limit s" 'raise config.create_timeout, or find the cause of the delay' "$(end_of 2000 <"$box/up.log")"
	containers_of --filter "label=sandboxer.id=$id"
	refuse_unstarted
	# A failed service says more than Compose's own message.
	judge_services
	[ "$verdict" != failed ] || fail_services 1
	up_words
	fail_docker "${up_service:+the service $up_service of }the stack could not be started" "$(printf '%s' "$up_said" | end_of 4000)"
}

# refuse_unstarted fails with the service that Docker could not start: Docker records the reason with the container.
refuse_unstarted() {
	while IFS='"' read -r _ _ _ _ _ _ _ service _ _ _ status _ container _; do
		case $status in 'Up '*) continue ;; esac
		its_error=$(docker container inspect -f '{{.State.Error}}' "$container" 2>/dev/null </dev/null)
		[ -z "$its_error" ] || fail_docker "the service $service of the stack could not be started" "$its_error"
	done <<-END
		$containers
	END
}

# up_words sets up_said to Compose's output without its progress, which hides and repeats the error, and up_service to
# the one service whose container it began and did not finish.
up_words() {
	up_said=$(grep -Ev '^ ?(Container|Network|Volume|service:[^ ]*) ' "$box/up.log") ||
		up_said=$(grep -Ev ' (Creating|Created|Starting|Started|Recreate|Recreated|Running|Waiting|Healthy) *$' "$box/up.log")
	up_service='' up_made=$(sed -n "s/^ *Container $id-\(.*\)-[0-9]* *Created *$/\1/p" "$box/up.log")
	for up_begun in $(sed -n "s/^ *Container $id-\(.*\)-[0-9]* *Creating *$/\1/p" "$box/up.log" | sort -u); do
		case "
$up_made
" in *"
$up_begun
"*) continue ;; esac
		[ -z "$up_service" ] || { up_service='' && return; }
		up_service=$up_begun
	done
}

# compose_up starts the stack. Volumes of an origin are filled once the containers, which have them, are made.
compose_up() {
	[ -z "$origin" ] || refill_workspace
	case ${parts-} in *'
volume '* | *'
data '*)
		compose_do --no-start
		[ "$up_code" = 0 ] || return 0
		refill_volumes
		;;
	esac
	[ -z "$origin" ] || refilled
	compose_do -d
}

compose_do() {
	limit_left
	set -- up "$1" --no-build --quiet-pull
	[ ! -f "$box/restored.json" ] || set -- -f "$box/restored.json" "$@"
	compose_command "$((limit_rest / 100 + 1))" --ansi never -p "$id" --project-directory "$box" --env-file /dev/null \
		-f "$model" "$@" >"$box/up.log" 2>&1
	up_code=$?
}

# allocate chooses the networks' subnets, under the host lock, and builds the walls before anything is behind them.
allocate() {
	[ -n "$networks" ] || return 0
	subnets_look
	lock_host
	subnets_allocate
	unlock_host
	case $mode in deny | proxy) deny_up ;; esac
	case $mode in
	guarded) firewall_up ;;
	proxy) proxy_up ;;
	esac
	step allocated
}

# hand_over copies the instructions into a sandbox without a workspace.
hand_over() {
	[ -f "$box/instructions.md" ] || return 0
	cid=
	while IFS='"' read -r _ _ _ _ _ _ _ service _ _ _ _ _ container _; do
		if [ "$service" = "$service_default" ] || { [ -z "$service_default" ] && [ -z "$cid" ]; }; then cid=$container; fi
	done <<-END
		$containers
	END
	# shellcheck disable=SC2016
	docker exec -i "$cid" sh -c 'mkdir -p "$HOME/.sandboxer" && cat >"$HOME/.sandboxer/instructions.md"' <"$box/instructions.md" >/dev/null 2>&1 ||
		warn 'the instructions could not be placed in the home of the service: it has no shell, or nothing runs in it'
}

use_root
use_box "$id"
read_clock
started=$uptime
need_tools
claim
step locked
adopted=false
settle_former
[ "$adopted" = false ] || finish
check_engine
receive
open_up
record
case $mode in deny | proxy) deny_prove ;; esac
allocate
pull_images
[ -z "$builds" ] || build_images
[ ! -d "$box/stack" ] || rm -rf "$box/stack"
[ -z "$origin" ] || origin_images
step starting
up
[ -z "$idle" ] || idle_cpu ||
	fail unsupported 'this host does not report the CPU time of containers, so idleness cannot be detected' 'remove ttl.idle_reap, or let the login read /sys/fs/cgroup'
our_time
manifest_put started "$now" state waiting
stage=up
finish
