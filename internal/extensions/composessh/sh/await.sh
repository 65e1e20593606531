# Waiting until a stack can be used.

# await_services LIMIT waits at most LIMIT (1/100 s) until expect containers of
# id run and are healthy, or have ended well. long and oneshot list services:
# those that must not end, and those that must. 1 = one has failed, 2 = the time
# is over; failed_service, failed_container and why then say which and how.
await_services() {
	read_clock
	await_until=$((uptime + $1)) pause=0
	# What ends at once shall not pass for ready: without a health check, having
	# run for a moment is all there is.
	sleep 0.3 2>/dev/null || sleep 1
	while :; do
		containers_of --filter "label=sandboxer.id=$id"
		judge_services
		[ "$verdict" = wait ] || break
		read_clock
		if [ "$uptime" -ge "$await_until" ]; then
			verdict=late
			break
		fi
		case $pause in
		0) pause=0.1 ;;
		0.1) pause=0.2 ;;
		0.2) pause=0.4 ;;
		*) pause=0.7 ;;
		esac
		sleep "$pause" 2>/dev/null || sleep 1
	done
	case $verdict in
	ready) return 0 ;;
	failed) return 1 ;;
	esac
	return 2
}

# judge_services sets verdict (ready, wait, failed) and running, how many run; ran
# are the services that do, ended those that do not any more, and made_of all containers.
judge_services() {
	verdict=ready seen=0 running=0 ran='' ended='' made_of='' why='' failed_service='' failed_container=''
	while IFS='"' read -r _ _ _ _ _ _ _ service _ _ _ status _ container _; do
		[ -n "$service" ] || continue
		seen=$((seen + 1)) made_of="$made_of $container"
		case $status in
		'Up '*) ran="$ran $service" ;;
		'Exited '*) ended="$ended $service" ;;
		esac
		case $status in
		'Up '*'(unhealthy)'*) judged failed "the service $service is unhealthy" ;;
		'Up '*'(health: starting)'*)
			running=$((running + 1))
			judged wait "the service $service is not healthy yet"
			;;
		'Up '*'(Paused)'*) judged wait "the service $service is paused" ;;
		'Up '*'(healthy)'*) running=$((running + 1)) ;;
		'Up '*)
			running=$((running + 1))
			case " $oneshot " in *" $service "*) judged wait "the service $service has not ended yet" ;; esac
			;;
		'Exited (0)'*)
			case " $long " in *" $service "*) judged failed "the service $service has ended, with exit code 0" ;; esac
			;;
		'Exited ('*)
			code=${status#'Exited ('}
			judged failed "the service $service has ended with exit code ${code%%)*}"
			;;
		*) judged wait "the service $service is not started yet: $status" ;;
		esac
	done <<-END
		$containers
	END
	if [ "$verdict" = ready ] && [ "$seen" -lt "$expect" ]; then
		verdict=wait why="$seen of $expect containers exist"
	fi
}

# container_of SERVICE sets failed_container to the last one of it.
container_of() {
	while IFS='"' read -r _ _ _ _ _ _ _ service _ _ _ _ _ container _; do
		[ "$service" != "$1" ] || failed_container=$container
	done <<-END
		$containers
	END
}

judged() {
	[ "$verdict" != failed ] || return 0
	[ "$1" = failed ] || [ "$verdict" = ready ] || return 0
	verdict=$1 why=$2 failed_service=$service failed_container=$container
}

# note_ready records that all that was judged last is as it should be, and what
# that was: a later look compares.
note_ready() { manifest_put state ready running "$running" ran "${ran# }" containers "${made_of# }"; }

# last_lines sets detail to the last lines that the failed container printed, and
# health to what its health check did.
last_lines() {
	detail=
	[ -n "$failed_container" ] || return 0
	detail=$(docker logs --tail 30 "$failed_container" 2>&1 </dev/null | tail -c 4000)
	health_of "$failed_container"
}

# fail_services fails with why and the failed service's last words.
fail_services() {
	last_lines
	case $1 in
	2) fail service_late "$why" '' "$detail" ;;
	esac
	fail service_failed "$why" '' "$detail"
}

# await_probe LIMIT asks the readiness probe until it answers or LIMIT (1/100 s)
# is over, at least once: 1 = it never answered, with why; 2 = a service has ended
# that should not have, or the one it asks, which nothing starts again, with why and
# failed_container.
await_probe() {
	[ -n "${probe_kind-}" ] || return 0
	read_clock
	await_until=$((uptime + $1))
	while :; do
		ready_probe && return 0
		probe_why=$why
		containers_of --filter "label=sandboxer.id=$id"
		judge_services
		case " $ran :$verdict: $ended " in
		*:failed:*" $failed_service "*) return 2 ;;
		*" $probe_on "*:*) ;;
		*:*" $probe_on "*)
			why="the service $probe_on has ended, which the readiness probe is to ask" failed_service=$probe_on
			container_of "$probe_on"
			return 2
			;;
		esac
		why=$probe_why
		read_clock
		[ $((uptime + probe_interval)) -lt "$await_until" ] || return 1
		sleep "$((probe_interval / 100)).$(printf '%02d' "$((probe_interval % 100))")" 2>/dev/null || sleep 1
	done
}
