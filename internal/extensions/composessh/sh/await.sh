# Waits until a stack can be used.

# await_services LIMIT waits at most LIMIT (1/100 s) until the expected containers of id run and are healthy, or have
# ended successfully. long lists services that must not end, oneshot those that must. 1 = one has failed, 2 = time is
# over; failed_service, failed_container and why then have the details.
await_services() { await_until_it is_ready "$1"; }

# await_settled LIMIT also waits until services without a health check have run for settle (1/100 s). Callers with
# another wait call await_services first, so that both times overlap.
await_settled() { await_until_it is_settled "$1"; }

is_ready() { :; }

# is_settled turns the verdict while it is too early. It computes settled_at once, from the last start: services that
# have run long enough cause no wait, and looked_at is when they were seen to run.
is_settled() {
	[ -n "$unjudged" ] && [ "${settle:-0}" -gt 0 ] || return 0
	[ -n "${settled_at-}" ] || find_settled_at
	[ "$looked_at" -ge "$settled_at" ] || verdict=wait why="its services have not run for as long as they must (readiness.settle)"
}

# find_settled_at sets settled_at, an uptime: no step of the host's clock moves it beyond settle from now.
find_settled_at() {
	settled_at=$((uptime + settle))
	# shellcheck disable=SC2086
	last_start=$(docker container inspect -f '{{.State.StartedAt}}' $unjudged 2>/dev/null </dev/null | sed 's/Z$//; s/T/ /' | sort | tail -n 1)
	began=$(date -u -d "${last_start%%.*}" +%s 2>/dev/null) && [ -n "$last_start" ] || return 0
	# Without fractions, a second that has begun has not passed.
	wall=$(date +%s.%N)
	case ${wall#*.} in *[!0-9]*) wall=${wall%%.*}.00 last_start=${last_start%%.*}.99 ;; esac
	case $last_start in *.*) ;; *) last_start=$last_start.00 ;; esac
	hundredths "${last_start#*.}"
	its_age=-$part
	hundredths "${wall#*.}"
	its_age=$(((${wall%%.*} - began) * 100 + part + its_age))
	[ "$its_age" -gt 0 ] || return 0
	settled_at=$((settled_at - its_age))
}

# hundredths DIGITS sets part to the first two digits of a fraction.
hundredths() {
	part=1${1}00
	part=$((${part%"${part#???}"} - 100))
}

# await_until_it JUDGE LIMIT looks until the judge agrees. With await_looked set, the services were just looked at.
await_until_it() {
	read_clock
	await_until=$((uptime + $2)) pause=0
	while :; do
		[ -n "${await_looked-}" ] || {
			containers_of --filter "label=sandboxer.id=$id"
			judge_services
			read_clock
			looked_at=$uptime
		}
		await_looked=
		[ "$verdict" != ready ] || "$1"
		[ "$verdict" = wait ] || break
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
		# What only has to run on is not looked at before its time.
		rest=$((${settled_at:-0} - uptime))
		[ "$rest" -lt 1 ] || [ "$rest" -gt 70 ] || pause=$(printf '0.%02d' "$rest")
		sleep "$pause" 2>/dev/null || sleep 1
	done
	case $verdict in
	ready) return 0 ;;
	failed) return 1 ;;
	esac
	return 2
}

# judge_services sets verdict (ready, wait, failed), running (the number that run), ran (the services that run), ended
# (those that no longer do), made_of (all containers) and unjudged (running ones without a health check).
judge_services() {
	verdict=ready seen=0 running=0 ran='' ended='' made_of='' unjudged='' why='' failed_service='' failed_container=''
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
			running=$((running + 1)) unjudged="$unjudged $container"
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

# container_of SERVICE sets failed_container to the service's last container.
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

# note_ready records that all is ready, and the state it was judged by: later looks compare with it.
note_ready() { manifest_put state ready running "$running" ran "${ran# }" containers "${made_of# }"; }

# last_lines sets detail to the failed container's last lines, and health to its health check's results.
last_lines() {
	detail=
	[ -n "$failed_container" ] || return 0
	detail=$(docker logs --tail 30 "$failed_container" 2>&1 </dev/null | end_of 4000)
	health_of "$failed_container"
}

# fail_services fails with why and the failed service's last lines.
fail_services() {
	last_lines
	case $1 in
	2) fail service_late "$why" '' "$detail" ;;
	esac
	fail service_failed "$why" '' "$detail"
}

# await_probe LIMIT asks the readiness probe until it answers or LIMIT (1/100 s) is over, at least once. 1 = it never
# answered, with why; 2 = a service ended unexpectedly, or the probe's service ended and nothing restarts it, with why
# and failed_container.
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
